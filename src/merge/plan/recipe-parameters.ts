import { displayName } from '../../formats/names';
import { nearestName } from '../../formats/nearest-name';
import { type IgnoredKeys, RECIPE_KEYS, type Recipe, type RecipeParameters } from '../../formats/recipe';
import { nameSome, type Problems } from '../../inputs/problems';
import type { MergeMethod } from '../method';

function didYouMean(name: string | undefined): string {
  return name === undefined ? '' : `Did you mean ${name}? `;
}

/** Warns of parameters that the method does not have, or that stand where they have no effect. */
export function checkParameterNames(recipe: Recipe, method: MergeMethod, problems: Problems): void {
  const has = (specs: MergeMethod['parameters'], name: string) => Object.hasOwn(specs, name);
  const report = (name: string, where: string, known: boolean) => {
    const takes = [...Object.keys(method.modelParameters), ...Object.keys(method.parameters)];
    problems.add({
      severity: 'warning',
      code: 'ParameterIgnored',
      keys: [name],
      message: known
        ? `${name} is a parameter of the whole merge; under ${where} it has no effect.`
        : `${method.id} has no parameter ${name}: under ${where} it has no effect.`,
      remedy: known
        ? `Move ${name} to the parameters of the recipe.`
        : takes.length === 0
          ? `Take ${name} out: ${method.id} has no parameters.`
          : `${didYouMean(nearestName(name, takes))}Its parameters are ${nameSome(takes, 12)}.`,
    });
  };
  const check = (parameters: RecipeParameters, where: string, ofModel: boolean) => {
    for (const name of Object.keys(parameters)) {
      if (has(method.modelParameters, name)) continue;
      const global = has(method.parameters, name);
      if (!global || ofModel) report(name, where, global);
    }
  };
  check(recipe.parameters, 'parameters', false);
  for (const { model, parameters } of recipe.models ?? []) check(parameters, model, true);
  for (const [i, slice] of (recipe.slices ?? []).entries()) {
    check(slice.parameters, `slice ${i + 1}`, false);
    for (const { model, parameters } of slice.sources) check(parameters, `${model} in slice ${i + 1}`, true);
  }
}

const MODEL_KEYS = ['model', 'parameters'];
const SLICE_KEYS = ['sources', 'base_model', 'parameters'];
const SOURCE_KEYS = [...MODEL_KEYS, 'layer_range'];

/** Warns of keys that no reader of recipes knows, each with the nearest one that there is. */
export function checkIgnoredKeys(recipe: Recipe, problems: Problems): void {
  const report = (ignored: IgnoredKeys | undefined, where: string, known: readonly string[]) => {
    const unknown = Object.keys(ignored ?? {});
    const meant = new Map(unknown.map((name) => [name, nearestName(name, known)]));
    const strange = unknown.filter((name) => meant.get(name) === undefined);
    const shown = strange.map((name) => displayName(name));
    const warn = (names: string, keys: string[], remedy: string) =>
      problems.add({
        severity: 'warning',
        code: 'KeyIgnored',
        keys,
        message: `mergekit ignores ${names}${where}, and so does Amalgam.`,
        remedy,
      });
    for (const [name, nearest] of meant) {
      if (nearest !== undefined) warn(displayName(name), [name], `Did you mean ${nearest}?`);
    }
    if (strange.length > 0)
      warn(nameSome(shown, 12), strange, 'No action needed, unless it was meant to have an effect.');
  };
  report(recipe.ignored, '', RECIPE_KEYS);
  for (const { model, ignored } of recipe.models ?? []) report(ignored, ` beside ${model}`, MODEL_KEYS);
  for (const [i, slice] of (recipe.slices ?? []).entries()) {
    report(slice.ignored, ` in slice ${i + 1}`, SLICE_KEYS);
    for (const { model, ignored } of slice.sources)
      report(ignored, ` beside ${model} in slice ${i + 1}`, SOURCE_KEYS);
  }
}
