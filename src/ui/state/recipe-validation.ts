/** Problems that keep the state from being a recipe, each for its field. Pure; the plan checks the rest. */
import { formatBytes, formatCounted } from '../../formats/quantity';
import type { MergeMethod, NumberSpec, ParameterSpec } from '../../merge/method';
import { keepsNothing, methodConflict } from '../../merge/method-conflicts';
import type { ModelInfo } from '../../reports/models';
import { methodName } from '../format/method-name';
import { shortName } from './built-recipe';
import {
  combinationOf,
  effectiveSpecs,
  hasCurve,
  type RecipeState,
  type Settings,
  type SettingValue,
  scalarValue,
  settingValue,
} from './recipe-state';

interface RecipeProblem {
  place: ProblemPlace;
  /** The problem, in a sentence. */
  message: string;
  /** Next step for the user. */
  remedy: string;
}

type ProblemPlace =
  | { kind: 'base' }
  | { kind: 'contributors' }
  | { kind: 'contributor'; ref: string; parameter: string }
  | { kind: 'parameter'; name: string }
  /** Values that are each in range but do not go together. */
  | { kind: 'method' }
  | { kind: 'seed' }
  | { kind: 'shardBytes' };

/** Smallest and largest shard the studio offers, in bytes. */
export const SHARD_BYTES = { min: 1_000_000, max: 50_000_000_000 } as const;

let last: { asked: readonly unknown[]; problems: readonly RecipeProblem[] } | undefined;

/**
 * Everything wrong with the state, in reading order of the form; empty when it makes a recipe. The last result is cached,
 * because several parts of the page ask after every edit.
 */
export function recipeProblems(
  recipe: RecipeState,
  models: readonly ModelInfo[],
  method: MergeMethod,
): readonly RecipeProblem[] {
  const asked = [recipe, models, method];
  if (!last?.asked.every((of, i) => of === asked[i])) {
    last = { asked, problems: problemsOf(recipe, models, method) };
  }
  return last.problems;
}

function problemsOf(recipe: RecipeState, models: readonly ModelInfo[], method: MergeMethod): RecipeProblem[] {
  // the plan checks a written recipe
  if (recipe.asWritten) return [];
  const single = [
    ...baseProblems(recipe, models, method),
    ...contributorProblems(recipe, method),
    ...parameterProblems(recipe, method),
  ];
  // what does not go together is asked of values that are all right by themselves
  return [...single, ...(single.length === 0 ? conflicts(recipe, method) : []), ...outputProblems(recipe)];
}

function conflicts(recipe: RecipeState, method: MergeMethod): RecipeProblem[] {
  // along a curve values go together in some layers and not in others: the plan looks at every tensor
  if (hasCurve(recipe, method)) return [];
  const resolved = (specs: Readonly<Record<string, ParameterSpec>>, settings: Settings) =>
    Object.fromEntries(
      Object.entries(specs).map(([name, spec]) => [name, scalarValue(settings, name, spec)]),
    );
  const enabled = recipe.contributors.filter((c) => c.enabled);
  const own = enabled.map((c) => resolved(method.modelParameters, c.parameters));
  const idle = enabled.filter((_, i) => keepsNothing(method, own[i]!));
  const found = idle.map(({ ref }) =>
    problem(
      { kind: 'contributor', ref, parameter: 'density' },
      `With density 0 nothing of ${shortName(ref)} is kept.`,
      'Choose a density above 0, or switch the model off.',
    ),
  );
  const conflict = methodConflict(method, resolved(method.parameters, recipe.parameters), own);
  if (!conflict) return found;
  const { reason, remedy } = conflict;
  return [...found, problem({ kind: 'method' }, `${methodName(method)}: ${reason}.`, remedy)];
}

function problem(place: ProblemPlace, message: string, remedy: string): RecipeProblem {
  return { place, message, remedy };
}

/** Why `value` is not a value of `spec`, or null; of a curve, the first point that is not. */
export function settingProblem(spec: ParameterSpec, value: SettingValue): string | null {
  if (Array.isArray(value)) {
    if (spec.kind !== 'number') return 'Only numbers follow a curve.';
    if (value.length === 0) return 'The curve has no points.';
    const at = value.findIndex((point) => settingProblem(spec, point) !== null);
    return at < 0 ? null : `Point ${at + 1} of the curve: ${settingProblem(spec, value[at]!)}`;
  }
  if (spec.kind === 'boolean') return typeof value === 'boolean' ? null : 'Must be on or off.';
  if (spec.kind === 'choice') {
    return spec.choices.some((c) => c.value === value)
      ? null
      : `Choose one of: ${spec.choices.map((c) => c.value).join(', ')}.`;
  }
  if (spec.kind === 'text') {
    return typeof value === 'string' && value !== '' ? null : `Must be ${spec.values}.`;
  }
  if (spec.auto && value === 'auto') return null;
  if (typeof value !== 'number' || !Number.isFinite(value)) return 'This is not a number.';
  if (value < spec.min || value > spec.max) return `Must be from ${spec.min} to ${spec.max}.`;
  if (spec.integer && !Number.isInteger(value)) return 'Must be a whole number.';
  return null;
}

function baseProblems(
  recipe: RecipeState,
  models: readonly ModelInfo[],
  method: MergeMethod,
): RecipeProblem[] {
  const place = { kind: 'base' } as const;
  const isAdapter = (ref: string) => models.find((m) => m.ref === ref)?.kind === 'adapter';
  const { base } = recipe;
  if (base !== null) {
    const message = `${shortName(base)} is an adapter and cannot be the base.`;
    return isAdapter(base) ? [problem(place, message, 'Choose a full checkpoint as the base.')] : [];
  }
  if (needsNoBase(recipe, models)) return [];
  const remedy = 'Choose the base on the left.';
  if (method.base === 'required')
    return [problem(place, `${methodName(method)} needs a base model.`, remedy)];
  const adapter = recipe.contributors.find((c) => c.enabled && isAdapter(c.ref));
  return adapter
    ? [problem(place, `The adapter ${shortName(adapter.ref)} needs a base model to sit on.`, remedy)]
    : [];
}

/** Whether LoRAs become a LoRA by their factors alone. */
export function needsNoBase(recipe: RecipeState, models: readonly ModelInfo[]): boolean {
  if (recipe.output !== 'adapter' || combinationOf(recipe, models) === 'merged_svd') return false;
  const enabled = recipe.contributors.filter((c) => c.enabled);
  return enabled.every(({ ref }) => models.some((m) => m.ref === ref && m.kind === 'adapter'));
}

/** Whether the recipe is of models that draw, which cannot be run here. */
export function isOfImages({ base, contributors }: RecipeState, models: readonly ModelInfo[]): boolean {
  const refs = base === null ? contributors.map(({ ref }) => ref) : [base];
  return refs.length > 0 && refs.every((ref) => models.some((m) => m.ref === ref && m.isImage));
}

function contributorProblems(recipe: RecipeState, method: MergeMethod): RecipeProblem[] {
  const place = { kind: 'contributors' } as const;
  const enabled = recipe.contributors.filter((c) => c.enabled);
  const { min, max } = method.models;
  const problems: RecipeProblem[] = [];
  if (enabled.length < min) {
    const there = enabled.length === 0 ? 'none is' : `${enabled.length} are`;
    const message = `${methodName(method)} needs at least ${formatCounted(min, 'contributor')}; ${there} in the recipe.`;
    const isOff = recipe.contributors.length > enabled.length;
    problems.push(problem(place, message, isOff ? 'Add a model or switch one on.' : 'Add a model.'));
  }
  if (enabled.length > max) {
    const message = `${methodName(method)} takes ${formatCounted(max, 'contributor')}; ${enabled.length} are switched on.`;
    problems.push(problem(place, message, `Switch off ${enabled.length - max}, or choose another method.`));
  }
  return [
    ...problems,
    ...enabled.flatMap(({ ref, parameters }) =>
      wrongSettings(method.modelParameters, recipe.parameters, parameters).map(({ name, spec, wrong }) =>
        problem(
          { kind: 'contributor', ref, parameter: name },
          `The ${spec.label} of ${shortName(ref)} does not fit.`,
          wrong,
        ),
      ),
    ),
  ];
}

function parameterProblems({ parameters }: RecipeState, method: MergeMethod): RecipeProblem[] {
  return wrongSettings(method.parameters, parameters, parameters).map(({ name, spec, wrong }) =>
    problem({ kind: 'parameter', name }, `${spec.label} does not fit.`, wrong),
  );
}

/** Settings with an effect that are no values of their parameters. @param chosen settings of the method */
function wrongSettings(specs: MergeMethod['parameters'], chosen: Settings, settings: Settings) {
  return effectiveSpecs(specs, chosen).flatMap(({ name, spec }) => {
    const wrong = settingProblem(spec, settingValue(settings, name, spec));
    return wrong === null ? [] : [{ name, spec, wrong }];
  });
}

function outputProblems({ seed, shardBytes }: RecipeState): RecipeProblem[] {
  const { min, max } = SHARD_BYTES;
  const isSeed = Number.isInteger(seed) && seed >= 0 && seed < 2 ** 32;
  const range = `From ${formatBytes(min)} to ${formatBytes(max)}.`;
  return [
    ...(isSeed
      ? []
      : [problem({ kind: 'seed' }, 'The seed is out of range.', 'A whole number from 0 to 4294967295.')]),
    ...(shardBytes >= min && shardBytes <= max
      ? []
      : [problem({ kind: 'shardBytes' }, 'The shard size is out of range.', range)]),
  ];
}

// A parameter as a curve over the layers: equally spaced points, straight lines between them. Pure.

/** As many points as the form offers; a recipe may have more. */
export const MOST_POINTS = 17;

/** Where the editor begins and ends: the slider's range, widened to what the points are. */
export function curveRange(spec: NumberSpec, points: readonly number[]): { min: number; max: number } {
  const { min, max } = spec.slider ?? { min: Math.max(spec.min, 0), max: Math.min(spec.max, 1) };
  const finite = points.filter(Number.isFinite);
  return { min: Math.min(min, ...finite), max: Math.max(max, ...finite) };
}

/** The least difference between two positions of a point. */
export function curveStep(spec: NumberSpec): number {
  return spec.slider?.step ?? 0.01;
}

/** A value on the steps of the parameter and within its bounds. */
export function snapped(value: number, spec: NumberSpec): number {
  const step = curveStep(spec);
  const bounded = Math.min(spec.cap ?? spec.max, Math.max(spec.min, Math.round(value / step) * step));
  return Number(bounded.toFixed(10));
}

/** The same curve with a point more between every two: only so does its shape stay. */
export function curveWithMorePoints(points: readonly number[]): number[] {
  return points.flatMap((point, i) => {
    const next = points[i + 1];
    return next === undefined ? [point] : [point, Number(((point + next) / 2).toFixed(10))];
  });
}

/** The curve without a point; the others spread out again. Two are left at least. */
export function withoutPoint(points: readonly number[], index: number): number[] {
  return points.length <= 2 ? [...points] : points.filter((_, i) => i !== index);
}

/** May this parameter be drawn over the layers? */
export function mayCurve(spec: { kind: string; integer?: boolean; slider?: object }): boolean {
  return spec.kind === 'number' && spec.integer !== true && spec.slider !== undefined;
}
