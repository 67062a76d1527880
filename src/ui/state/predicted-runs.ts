/** Runs of the Layers tab that are only predicted: other settings for the models of the recipe. No merge is needed. */
import type { Recipe } from '../../formats/recipe';
import { methodById } from '../../merge/methods/index';
import type { ModelInfo } from '../../reports/models';
import { buildRecipe } from './built-recipe';
import { deltaKey } from './delta-statistics';
import { recipeState } from './opened-recipe';
import { type RecipeState, setMethod } from './recipe-state';
import { NOW, type PredictedRun } from './runs';
import { editRecipe, methodOf, type Studio, type StudioState, setView } from './studio';

/** Most runs that are shown side by side. */
const MOST_SHOWN = 4;

/** The recipe with the method and the settings of another one of its models. */
export function withSettingsOf(recipe: RecipeState, of: Recipe, models: readonly ModelInfo[]): RecipeState {
  const { method, parameters, seed, asWritten, contributors } = recipeState(of, models);
  return {
    ...recipe,
    ...{ method, parameters, seed, asWritten },
    contributors: recipe.contributors.map((own) => {
      const found = contributors.find(({ ref }) => ref === own.ref);
      return found ? { ...own, parameters: found.parameters } : own;
    }),
  };
}

/** A run with the settings of a recipe. */
export function runOf(
  recipe: RecipeState,
  models: readonly ModelInfo[],
  id: string,
  name: string | null = null,
): PredictedRun {
  const of = deltaKey({ recipe, models });
  return { id, status: 'predicted', of, name, recipe: buildRecipe(recipe, models, methodOf(recipe)) };
}

/** Adds the settings of the recipe as a run of its own, or those that the form has with another method, and shows it. */
export function addPredictedRun(studio: Studio, methodId?: string): void {
  const state = studio.store.getState();
  const { recipe, models } = state;
  const from = methodOf(recipe);
  const to = methodById.get(methodId ?? '');
  const run = runOf(to && to !== from ? setMethod(recipe, from, to) : recipe, models, freeId(state));
  studio.store.setState((s) => ({ runs: [...s.runs, run] }));
  showRun(studio, run.id);
}

function freeId({ runs }: StudioState): string {
  let n = 1;
  while (runs.some((run) => run.id === `p${n}`)) n += 1;
  return `p${n}`;
}

/** Shows a run beside the others; of too many the first goes. */
export function showRun(studio: Studio, id: string): void {
  const { runs } = studio.store.getState().view;
  if (runs.includes(id)) return;
  setView(studio, { runs: [...runs, id].slice(-MOST_SHOWN) });
}

/** Shows a run, or hides it; one is always shown. */
export function toggleRun(studio: Studio, id: string): void {
  const { runs } = studio.store.getState().view;
  if (!runs.includes(id)) showRun(studio, id);
  else if (runs.length > 1) setView(studio, { runs: runs.filter((r) => r !== id) });
}

/** Takes a run out of the comparison. */
export function hideRun(studio: Studio, id: string): void {
  const left = studio.store.getState().view.runs.filter((r) => r !== id);
  setView(studio, { runs: left.length > 0 ? left : [NOW] });
}

/** Puts the method and the settings of another recipe of these models into the recipe, to merge it or to go on from it. */
export function takeSettings(studio: Studio, of: Recipe): void {
  const { models } = studio.store.getState();
  editRecipe(studio, (recipe) => withSettingsOf(recipe, of, models));
}
