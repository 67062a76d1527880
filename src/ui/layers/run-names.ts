/** Names of runs, by their differences. Pure. */

import { formatSetting } from '../../formats/quantity';
import type { ParameterScalar, Recipe } from '../../formats/recipe';
import type { MergeMethod } from '../../merge/method';
import { methodName } from '../format/method-name';
import { effectiveSpecs, type Settings } from '../state/recipe-state';

interface Named {
  recipe: Recipe;
  method: MergeMethod;
  /** Given by a user. */
  given: string | null;
}

/** A name for every run: its method, its density, and what else it does not share with the others of its method. */
export function runNames(runs: readonly Named[]): string[] {
  const all = runs.map(traitsOf);
  return runs.map(({ given, method }, i) => {
    if (given !== null) return given;
    const own = all[i]!;
    const others = all.filter((_, j) => j !== i && runs[j]!.method.id === method.id);
    const parts = [...own].flatMap(([name, text]) =>
      name === 'density' || others.some((other) => other.get(name) !== text) ? [text] : [],
    );
    return [methodName(method), ...parts].join(' · ');
  });
}

/** Names without the parts with which all of them begin: there is little room over a chart. */
export function shortNames(names: readonly string[]): string[] {
  const parts = names.map((name) => name.split(' · '));
  const [first = []] = parts;
  const shared = first.findIndex((part, i) => parts.some((own) => own[i] !== part || own.length === i + 1));
  return names.length < 2 || shared < 1 ? [...names] : parts.map((own) => own.slice(shared).join(' · '));
}

const known = new WeakMap<Recipe, Map<string, string>>();

/** Settings of a recipe, by parameter, in words. */
function traitsOf({ recipe, method }: Named): Map<string, string> {
  const before = known.get(recipe);
  if (before) return before;
  const traits = new Map<string, string>();
  const settings = Object.fromEntries(
    Object.entries(method.parameters).map(([name, spec]) => [name, recipe.parameters[name] ?? spec.default]),
  ) as Settings;
  for (const { name, spec } of effectiveSpecs(method.parameters, settings)) {
    const value = settings[name];
    if (spec.kind === 'choice') {
      const choice = spec.choices.find((c) => c.value === value);
      traits.set(name, choice?.label ?? String(value));
    } else traits.set(name, said(spec.label, value, spec.kind === 'number' ? spec.slider?.step : undefined));
  }
  for (const { name, spec } of effectiveSpecs(method.modelParameters, settings)) {
    const values = (recipe.models ?? []).map(
      (m) => m.parameters[name] ?? recipe.parameters[name] ?? spec.default,
    );
    const texts = new Set(values.map((value) => JSON.stringify(value)));
    const step = spec.kind === 'number' ? spec.slider?.step : undefined;
    const [value] = values;
    if (texts.size === 0 || value === undefined) continue;
    const text =
      texts.size > 1
        ? `${spec.label.toLowerCase()} by model`
        : name === 'density' && typeof value === 'number'
          ? formatSetting(value, step)
          : said(spec.label, value, step);
    traits.set(name, text);
    // which models, where values differ
    if (texts.size > 1) traits.set(name, `${text} ${values.map((v) => short(v, step)).join(' ')}`);
  }
  known.set(recipe, traits);
  return traits;
}

function said(label: string, value: unknown, step: number | undefined): string {
  if (value === true) return label.toLowerCase();
  if (value === false || value === undefined) return `no ${label.toLowerCase()}`;
  return `${label.toLowerCase()} ${short(value, step)}`;
}

function short(value: unknown, step: number | undefined): string {
  if (typeof value === 'number') return formatSetting(value, step);
  return Array.isArray(value) ? 'by layer' : String(value as ParameterScalar);
}
