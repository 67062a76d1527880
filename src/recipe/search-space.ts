/** The settings of a recipe that can be searched for, as coordinates of about the same scale. Pure. */
import type { ParameterSetting, Recipe } from '../formats/recipe';
import type { MergeMethod } from '../merge/method';

/** A setting: where the search starts, and how far its first steps go. */
interface Variable {
  name: string;
  start: number;
  step: number;
  /** From a coordinate to a value of the setting, and back. */
  value(x: number): number;
  place(value: number): number;
}

interface SearchSpace {
  names: string[];
  start: number[];
  /** Coordinates in units of the first steps. */
  values(point: ArrayLike<number>): Record<string, number>;
  recipe(values: Readonly<Record<string, number>>): Recipe;
}

const DENSITY = 'density';
const LAMBDA = 'lambda';
const SUM = 'sum';
/** On the sets of docs/importance.md the best was from 0 to 0.2, and λ is tuned already. */
const SUM_STEP = 0.1;
/** Significant digits of a setting: more would only be noise in the recipe. */
const round = (value: number) => Number(value.toPrecision(5));

/**
 * Weights of the models where the method has them, λ where it has no weights or divides by them, the share of the sum that a Gram merge
 * adds, and one density for all where some of the changes are trimmed; undefined for a recipe without such settings.
 */
export function searchSpace(recipe: Recipe, method: MergeMethod): SearchSpace | undefined {
  const models = (recipe.models ?? []).filter(({ model }) => model !== recipe.baseModel);
  const weighted = method.modelParameters.weight !== undefined;
  const normalized =
    method.parameters.normalize !== undefined &&
    (recipe.parameters.normalize ?? defaultOf(method, 'normalize')) !== false;
  const variables: Variable[] = weighted
    ? models.map(({ parameters }, i) =>
        linear(`weight ${i + 1}`, startOf(parameters.weight ?? recipe.parameters.weight)),
      )
    : [];
  const sums = method.parameters[SUM] !== undefined;
  if (method.parameters[LAMBDA] && (!weighted || normalized)) {
    variables.push(logarithmic(LAMBDA, startOf(recipe.parameters[LAMBDA]), sums ? SUM_STEP : undefined));
  }
  const sum = recipe.parameters[SUM] ?? 0;
  if (sums && typeof sum === 'number') variables.push(linear(SUM, sum, SUM_STEP));
  const standing = models.map(({ parameters }) => parameters[DENSITY] ?? recipe.parameters[DENSITY]);
  const densities = standing.map(startOf);
  const isShaped = standing.some((setting) => Array.isArray(setting));
  if (method.modelParameters[DENSITY] && isShaped) {
    variables.push(logarithmic(DENSITY, 1));
  } else if (method.modelParameters[DENSITY] && densities.some((d) => d < 1)) {
    variables.push(logistic(DENSITY, densities.reduce((a, b) => a + b, 0) / densities.length));
  }
  if (variables.length === 0) return undefined;
  return {
    names: variables.map(({ name }) => name),
    start: variables.map(({ start, place, step }) => place(start) / step),
    values: (point) =>
      Object.fromEntries(variables.map(({ name, value, step }, i) => [name, round(value(point[i]! * step))])),
    recipe: (values) => ({
      ...recipe,
      parameters: {
        ...recipe.parameters,
        // weights set the distance: λ beside them is not searched for again in every candidate
        ...(recipe.parameters[LAMBDA] === 'auto' && { [LAMBDA]: 1 }),
        ...(values[LAMBDA] !== undefined && { [LAMBDA]: scaled(recipe.parameters[LAMBDA], values[LAMBDA]) }),
        ...(values[SUM] !== undefined && { [SUM]: values[SUM] }),
      },
      models: (recipe.models ?? []).map((entry) => {
        const i = models.indexOf(entry);
        if (i < 0) return entry;
        const weight = values[`weight ${i + 1}`];
        const density = values[DENSITY];
        return {
          ...entry,
          parameters: {
            ...entry.parameters,
            ...(weight !== undefined && {
              weight: scaled(entry.parameters.weight ?? recipe.parameters.weight, weight),
            }),
            ...(density !== undefined && {
              [DENSITY]: isShaped ? scaled(standing[i] ?? 1, density, 1) : density,
            }),
          },
        };
      }),
    }),
  };
}

function defaultOf(method: MergeMethod, name: string): unknown {
  const spec = method.parameters[name];
  return spec && 'default' in spec ? spec.default : undefined;
}

/** Start of a setting: a number at itself; what differs from layer to layer at 1, the factor of all of it. */
function startOf(setting: ParameterSetting | undefined): number {
  return typeof setting === 'number' ? setting : 1;
}

/** The setting at a value of its variable: the value, or what stands, gradients and filters, times it. */
function scaled(
  setting: ParameterSetting | undefined,
  value: number,
  most = Number.POSITIVE_INFINITY,
): ParameterSetting {
  const times = (x: number) => round(Math.min(most, x * value));
  if (!Array.isArray(setting)) return most === 1 && typeof setting === 'number' ? times(setting) : value;
  return setting.map((entry) => {
    if (typeof entry === 'number') return times(entry);
    const { value: own } = entry;
    const changed = Array.isArray(own) ? own.map(times) : typeof own === 'number' ? times(own) : own;
    return { ...entry, value: changed };
  }) as ParameterSetting;
}

const linear = (name: string, start: number, step = 0.3): Variable => ({
  name,
  start,
  step,
  value: (x) => x,
  place: (v) => v,
});

const logarithmic = (name: string, start: number, step = 0.3): Variable => ({
  name,
  start: Math.max(start, 1e-3),
  step,
  value: Math.exp,
  place: Math.log,
});

const logistic = (name: string, start: number): Variable => ({
  name,
  start: Math.min(0.98, Math.max(0.02, start)),
  step: 0.8,
  value: (x) => 1 / (1 + Math.exp(-x)),
  place: (v) => Math.log(v / (1 - v)),
});
