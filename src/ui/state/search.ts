/** The search for the settings of the recipe on the chosen texts or tasks: started, followed, and its candidates taken over. */

import { searchOptions } from '../../recipe/options';
import { isInRange } from '../../reports/option';
import type { SearchPoint, SearchProgress, SearchRequest } from '../../reports/search';
import { buildRecipe, shortName } from './built-recipe';
import { whyNotMeasure } from './evaluation';
import type { SearchRun } from './evaluation-state';
import { scoredText } from './evaluation-texts';
import { runTool } from './job';
import type { JobProgress } from './job-state';
import { type RecipeState, setContributorParameter, setParameter } from './recipe-state';
import { editRecipe, editSlice, methodOf, type Studio } from './studio';
import type { StudioState } from './studio-state';
import { chosenTasks, whyNotScore } from './tasks';

export interface SearchChoices {
  by: SearchRun['by'];
  /** Merges to measure; the last generation is measured whole. */
  evaluations: number;
  seed: number;
}

/** Why no search can begin now, or null. */
export function whyNotSearch(state: StudioState, { by, evaluations, seed }: SearchChoices): string | null {
  if (!isInRange(searchOptions.evaluations, evaluations)) return 'Merges to measure: a whole number from 2.';
  if (!isInRange(searchOptions.seed, seed)) return 'Seed: a whole number from 0.';
  return by === 'perplexity' ? whyNotMeasure(state) : whyNotScore(state);
}

/** Objective of a search: title, value, order and words. */
export interface Objective {
  title: string;
  /** null: could not be merged or measured. */
  of(point: SearchPoint): number | null;
  isBetter(point: SearchPoint, than: SearchPoint): boolean;
  /** The number with its name and, where it has one, its error. */
  text(point: SearchPoint): string;
}

export const OBJECTIVES: Readonly<Record<SearchRun['by'], Objective>> = {
  perplexity: {
    title: 'perplexity',
    of: ({ perplexity }) => perplexity,
    isBetter: (point, than) =>
      (point.perplexity ?? Number.POSITIVE_INFINITY) < (than.perplexity ?? Number.POSITIVE_INFINITY),
    text: ({ perplexity }) => `perplexity ${perplexity === null ? '–' : perplexity.toFixed(3)}`,
  },
  accuracy: {
    title: 'accuracy',
    of: ({ score }) => score?.value ?? null,
    // of equal accuracies the one whose right answers are more probable, as the search ranks them
    isBetter: ({ score }, { score: than }) =>
      score !== undefined &&
      (than === undefined ||
        score.value > than.value ||
        (score.value === than.value && score.rightLogShare > than.rightLogShare)),
    text: ({ score }) =>
      `accuracy ${score ? score.value.toFixed(3) : '–'}${score?.stderr ? ` ± ${score.stderr.toFixed(3)}` : ''}`,
  },
};

/**
 * Searches from the current recipe; candidates are shown as they are measured, and stay when it is stopped. The engine
 * remembers the measurements, so the same search resumes from them. Never rejects.
 */
export async function startSearch(studio: Studio, choices: SearchChoices): Promise<void> {
  const before = studio.store.getState();
  if (whyNotSearch(before, choices) !== null) return;
  const { evaluation, recipe, models, engine, tasks } = before;
  const { amount, window, stride, texts } = evaluation;
  const { by, evaluations, seed } = choices;
  editSlice(studio, 'evaluation', { search: { by, recipe, points: [], error: null } });
  const request = (): SearchRequest => ({
    recipe: buildRecipe(recipe, models, methodOf(recipe)),
    ...(by === 'perplexity'
      ? {
          inputs: texts.filter((t) => t.chosen).map(({ text }) => ({ text: scoredText(text, amount) })),
          window,
          stride,
        }
      : { inputs: [], tasks: { ...chosenTasks(tasks), metric: 'acc' } }),
    evaluations,
    seed,
    engine: engine.choice,
  });
  const outcome = await runTool(
    studio,
    'search',
    (onProgress) => studio.worker.search(request(), onProgress),
    searchProgress,
    ({ points }) => editSearch(studio, (search) => ({ points: [...search.points, ...points] })),
  );
  if ('value' in outcome) editSearch(studio, () => ({ points: outcome.value.points }));
  else if ('error' in outcome) editSearch(studio, () => ({ error: outcome.error }));
}

/** Puts a candidate into the recipe, also while the search goes on. */
export function takeCandidate(studio: Studio, { recipe }: SearchRun, { values }: SearchPoint): void {
  editRecipe(studio, () => withValues(recipe, values));
}

/** The recipe that a search began with, with the values of a candidate. Pure. */
export function withValues(recipe: RecipeState, values: SearchPoint['values']): RecipeState {
  const { lambda, density } = values;
  const whole =
    lambda !== undefined
      ? setParameter(recipe, 'lambda', lambda)
      : recipe.parameters.lambda === 'auto'
        ? setParameter(recipe, 'lambda', 1)
        : recipe;
  return searched(recipe).reduce((made, { ref }, i) => {
    const weight = values[`weight ${i + 1}`];
    const weighed = weight === undefined ? made : setContributorParameter(made, ref, 'weight', weight);
    return density === undefined ? weighed : setContributorParameter(weighed, ref, 'density', density);
  }, whole);
}

/** Title of a searched setting: weights by their models. Pure. */
export function variableTitle(recipe: RecipeState, name: string): string {
  const [, number] = /^weight (\d+)$/.exec(name) ?? [];
  const model = number === undefined ? undefined : searched(recipe)[Number(number) - 1];
  if (model) return `weight of ${shortName(model.ref)}`;
  return name === 'lambda' ? 'λ' : name;
}

/** The contributors that are merged, in the order of their weights. */
function searched(recipe: RecipeState): RecipeState['contributors'] {
  return recipe.contributors.filter((c) => c.enabled && c.ref !== recipe.base);
}

/** Index of the best candidate; −1 where none could be measured. Pure. */
export function bestCandidate({ by, points }: Pick<SearchRun, 'by' | 'points'>): number {
  const { of, isBetter } = OBJECTIVES[by];
  return points.reduce(
    (best, point, i) => (of(point) !== null && (best < 0 || isBetter(point, points[best]!)) ? i : best),
    -1,
  );
}

function searchProgress({ done, total, secondsLeft }: SearchProgress): JobProgress {
  return {
    phase: 'searching',
    item: '',
    share: Math.min(1, done / total),
    counted: { done, total, unit: 'merges' },
    bytes: null,
    rate: null,
    secondsLeft,
  };
}

function editSearch(studio: Studio, edit: (search: SearchRun) => Partial<SearchRun>): void {
  const { search } = studio.store.getState().evaluation;
  if (search) editSlice(studio, 'evaluation', { search: { ...search, ...edit(search) } });
}
