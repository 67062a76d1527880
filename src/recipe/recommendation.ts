/** What the recommended merge tries, how much work that is, and what its figures say. Pure. */
import { heldOutSize } from '../calibration/calibration';
import type { MeasuredAround } from '../calibration/reference-measures';
import type { Recipe, RecipeParameters } from '../formats/recipe';
import { textSize } from '../merge/methods/importance-parameters';
import type { WorkStep } from './overall-progress';

export interface Candidate {
  title: string;
  recipe: Recipe;
}

/** Parameters of a recipe that say what its models read. */
const READING = ['calibration', 'calibration_windows', 'calibration_window'] as const;

/**
 * The methods that are tried, λ to be searched for, those that take longest first.
 * @param recipe base, contributors, and what they read
 */
export function candidateRecipes(recipe: Recipe): Candidate[] {
  const reading = pick(recipe.parameters);
  const made = (mergeMethod: string, parameters: RecipeParameters, weight: RecipeParameters): Recipe => ({
    ...recipe,
    mergeMethod,
    parameters: { ...reading, ...parameters, lambda: 'auto' },
    models: (recipe.models ?? [])
      .filter(({ model }) => model !== recipe.baseModel)
      .map(({ model, parameters: own }) => ({ model, parameters: { ...pick(own), ...weight } })),
  });
  return [
    { title: 'Gram merge, outputs matched', recipe: made('gram', { match: 'outputs' }, {}) },
    { title: 'Gram merge', recipe: made('gram', {}, {}) },
    { title: 'Gram merge of the changes', recipe: made('gram', { match: 'changes' }, {}) },
    { title: 'Task arithmetic', recipe: made('task_arithmetic', {}, { weight: 1 }) },
  ];
}

/** The recipe of a candidate with the λ that was found; what is read means nothing to task arithmetic any more. */
export function withLambdaFound(recipe: Recipe, lambda: number): Recipe {
  const found = { ...recipe, parameters: { ...recipe.parameters, lambda } };
  if (recipe.mergeMethod !== 'task_arithmetic') return found;
  const without = (parameters: RecipeParameters) =>
    Object.fromEntries(Object.entries(parameters).filter(([name]) => !READING.some((of) => of === name)));
  return {
    ...found,
    parameters: without(found.parameters),
    models: (recipe.models ?? []).map((entry) => ({ ...entry, parameters: without(entry.parameters) })),
  };
}

function pick(parameters: RecipeParameters): RecipeParameters {
  return Object.fromEntries(
    READING.flatMap((name) => (parameters[name] === undefined ? [] : [[name, parameters[name]]])),
  );
}

/** Passes over the held-out text: values of λ on about two fifths of it, and the chosen one on the rest. */
const SEARCH_PASSES = 5 * 0.4 + 0.6;
/** Passes over what is read, with the products, of the candidates in their order. */
const PASSES = [4, 1.5];

/** Tokens that the contributors read in all, for calibration. */
export function tokensRead({ parameters, models = [] }: Recipe): number {
  const { windows, length } = textSize(parameters);
  return models.length * windows * length;
}

/**
 * Work of all steps, in passes of a token through a model: text, every candidate, the comparison, the merge.
 */
export function workSteps(recipe: Recipe, candidates: number): WorkStep[] {
  const read = tokensRead(recipe);
  const size = textSize(recipe.parameters);
  const { windows } = heldOutSize({ windows: size.windows, length: 1 });
  const models = Math.max(1, recipe.models?.length ?? 1);
  const measure = models * windows * size.length;
  const tries = Array.from({ length: candidates }, (_, i): WorkStep[] => [
    { at: 1 + i, phase: 'calibrating', work: (PASSES[i] ?? 0) * read },
    { at: 1 + i, phase: 'searching', work: SEARCH_PASSES * measure },
  ]);
  return [
    { at: 0, phase: 'writing', work: 1.5 * (read + measure) },
    ...tries.flat(),
    { at: 1 + candidates, phase: 'comparing', work: (models + 1) * measure },
    { at: 2 + candidates, phase: 'merging', work: 0.1 * read },
  ];
}

/**
 * Share of each contributor's gain over the base, on its own text, that the merge keeps.
 * @param merge its losses on the texts
 */
export function keptShares(
  { base, contributors }: MeasuredAround,
  merge: readonly number[],
): (number | null)[] {
  return contributors.map(({ losses }, i) => {
    const gain = base[i]! - losses[i]!;
    return gain > 0 ? (base[i]! - merge[i]!) / gain : null;
  });
}

/**
 * The most of a contributor's gain on its own text that another contributor has there too. Where it is large the
 * contributors learnt some of the same, and text they wrote themselves says little of how far they should be taken.
 */
export function overlapOf({ base, contributors }: MeasuredAround): number | null {
  const shares = contributors.flatMap(({ losses: own }, i) => {
    const gain = base[i]! - own[i]!;
    if (!(gain > 0)) return [];
    return contributors.flatMap(({ losses }, j) => (j === i ? [] : [(base[i]! - losses[i]!) / gain]));
  });
  return shares.length === 0 ? null : Math.max(...shares);
}
