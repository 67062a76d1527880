/** The settings of a recipe that can be searched for, as coordinates of about the same scale. Pure. */
import type { ParameterSetting, Recipe } from '../formats/recipe';
import type { MergeMethod } from '../merge/method';
import type { FindBestRequest } from '../reports/find-best';

/** A setting: where the search starts, and how far its first steps go. */
interface Variable {
  name: string;
  start: number;
  step: number;
  /** From a coordinate to a value of the setting, and back. */
  value(x: number): number;
  place(value: number): number;
}

const DENSITY = 'density';
const LAMBDA = 'lambda';
const SUM = 'sum';
/** On the sets of docs/importance.md the best was from 0 to 0.2, and λ is tuned already. */
const SUM_STEP = 0.1;
/** Significant digits of a setting: more would only be noise in the recipe. */
const round = (value: number) => Number(value.toPrecision(5));

/** Kinds of tensors by parts of their names, in the order they are looked for: `post_attention_layernorm` is a norm. */
const KINDS = [
  { kind: 'norms', filters: ['norm'] },
  { kind: 'attention', filters: ['attn', 'attention'] },
  { kind: 'mlp', filters: ['mlp'] },
] as const;
const REST = 'rest';

/** A setting of the recipe as variables, and the setting at their values. */
interface Searched {
  variables: Variable[];
  at(values: Readonly<Record<string, number>>): ParameterSetting;
}

/**
 * Weights of the models where the method has them, t, λ where it has no weights or divides by them, the share of the sum that a
 * Gram merge adds, and one density for all where some of the changes are trimmed; undefined for a recipe without such settings.
 * Of gradients and filters that stand a factor is searched for; of a gradient where gradients are asked for each point.
 */
export function searchSpace(recipe: Recipe, method: MergeMethod, shape: FindBestRequest['shape'] = {}) {
  const { layers = 1, kinds = false } = shape;
  const { parameters } = recipe;
  const models = (recipe.models ?? []).filter(({ model }) => model !== recipe.baseModel);
  // other weights want another solution
  const weighted = method.modelParameters.weight !== undefined && method.compute.kind !== 'solved';
  const normalized =
    method.parameters.normalize !== undefined &&
    (parameters.normalize ?? defaultOf(method, 'normalize')) !== false;
  const weights = models.map((entry, i) =>
    weighted
      ? searched(`weight ${i + 1}`, entry.parameters.weight ?? parameters.weight, linear, layers)
      : undefined,
  );
  const ownT = method.parameters.t;
  const t =
    ownT?.kind === 'number' &&
    searched('t', parameters.t ?? ownT.default, ownT.min < 0 ? linear : logarithmic, layers);
  const hasLambda = method.parameters[LAMBDA] && (kinds || !weighted || normalized);
  const sums = method.parameters[SUM] !== undefined;
  // of a sum λ is tuned already
  const near: MakeVariable = (name, start) => logarithmic(name, start, sums ? SUM_STEP : undefined);
  const lambda = hasLambda && (kinds ? byKind : searched)(LAMBDA, parameters[LAMBDA], near);
  const ownSum = parameters[SUM] ?? 0;
  const sum = sums && typeof ownSum === 'number' && linear(SUM, ownSum, SUM_STEP);
  const standing = models.map((entry) => entry.parameters[DENSITY] ?? parameters[DENSITY]);
  const densities = standing.map(startOf);
  const isShaped = standing.some((setting) => Array.isArray(setting));
  const trimmed = method.modelParameters[DENSITY] && (isShaped || densities.some((d) => d < 1));
  const mean = densities.reduce((a, b) => a + b, 0) / densities.length;
  const variables = [
    ...weights.flatMap((of) => of?.variables ?? []),
    ...(t ? t.variables : []),
    ...(lambda ? lambda.variables : []),
    ...(sum ? [sum] : []),
    ...(trimmed ? [isShaped ? logarithmic(DENSITY, 1) : logistic(DENSITY, mean)] : []),
  ];
  if (variables.length === 0) return undefined;
  return {
    names: variables.map(({ name }) => name),
    start: variables.map(({ start, place, step }) => place(start) / step),
    values: (point: ArrayLike<number>) =>
      Object.fromEntries(variables.map(({ name, value, step }, i) => [name, round(value(point[i]! * step))])),
    recipe: (values: Readonly<Record<string, number>>): Recipe => ({
      ...recipe,
      parameters: {
        ...parameters,
        // weights set the distance: λ beside them is not searched for again in every candidate
        ...(parameters[LAMBDA] === 'auto' && { [LAMBDA]: 1 }),
        ...(lambda && { [LAMBDA]: lambda.at(values) }),
        ...(t && { t: t.at(values) }),
        ...(sum && { [SUM]: values[SUM]! }),
      },
      models: (recipe.models ?? []).map((entry) => {
        const i = models.indexOf(entry);
        if (i < 0) return entry;
        const density = values[DENSITY];
        return {
          ...entry,
          parameters: {
            ...entry.parameters,
            ...(weights[i] && { weight: weights[i].at(values) }),
            ...(density !== undefined && {
              [DENSITY]: isShaped ? scaled(standing[i] ?? 1, density, 1) : density,
            }),
          },
        };
      }),
    }),
  };
}

type MakeVariable = (name: string, start: number) => Variable;

/** One value, or the factor of what stands; of a gradient, where `layers` of them are asked for, its points. */
function searched(
  name: string,
  standing: ParameterSetting | undefined,
  make: MakeVariable,
  layers = 1,
): Searched {
  const isCurve = Array.isArray(standing) && standing.every((entry) => typeof entry === 'number');
  if (layers > 1 && (isCurve || !Array.isArray(standing))) {
    const points = isCurve ? (standing as number[]) : Array<number>(layers).fill(startOf(standing));
    const variables = points.map((start, i) => make(`${name} [${i + 1}]`, start));
    return { variables, at: (values) => variables.map((own) => values[own.name]!) };
  }
  return {
    variables: [make(name, startOf(standing))],
    at: (values) => scaled(standing, values[name]!),
  };
}

/** A value for each kind of tensor; of filters and gradients that stand a factor. */
function byKind(name: string, standing: ParameterSetting | undefined, make: MakeVariable): Searched {
  if (Array.isArray(standing)) return searched(name, standing, make);
  const named = (kind: string) => `${name} ${kind}`;
  return {
    variables: [...KINDS.map(({ kind }) => kind), REST].map((kind) => make(named(kind), startOf(standing))),
    at: (values) => [
      ...KINDS.flatMap(({ kind, filters }) =>
        filters.map((filter) => ({ filter, value: values[named(kind)]! })),
      ),
      { value: values[named(REST)]! },
    ],
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

export type SearchSpace = NonNullable<ReturnType<typeof searchSpace>>;
