/** Runs of the Layers tab that are only predicted: other settings for the models of the recipe. No merge is needed. */
import type { MergeMethod } from '../../merge/method';
import { methodById } from '../../merge/methods/index';
import type { ModelInfo } from '../../reports/models';
import { contributorId } from './built-recipe';
import { deltaKey } from './delta-statistics';
import type { RecipeState, Settings } from './recipe-state';
import { NOW, type PredictedRun, withEdited } from './runs';
import { editRecipe, methodOf, type Studio, setView } from './studio';
import type { StudioState } from './studio-state';

/** Most runs that are shown side by side. */
const MOST_SHOWN = 4;

/** The recipe with the settings of a predicted run. */
export function recipeOfRun(
  run: PredictedRun,
  recipe: RecipeState,
  models: readonly ModelInfo[],
): RecipeState {
  return {
    ...recipe,
    asWritten: null,
    method: run.method,
    parameters: run.parameters,
    seed: run.seed,
    contributors: recipe.contributors.map((c) => ({
      ...c,
      parameters: run.models[contributorId(recipe.base, c.ref, models)] ?? {},
    })),
  };
}

/** A run with the settings of a recipe. */
export function runOf(
  recipe: RecipeState,
  models: readonly ModelInfo[],
  id: string,
  name: string | null = null,
): PredictedRun {
  return {
    id,
    status: 'predicted',
    of: deltaKey({ recipe, models }),
    name,
    method: recipe.method,
    parameters: recipe.parameters,
    seed: recipe.seed,
    models: Object.fromEntries(
      recipe.contributors.map((c) => [contributorId(recipe.base, c.ref, models), c.parameters]),
    ),
  };
}

/** Adds the settings of the recipe as a run of its own, or those with which another method begins, and shows it. */
export function addPredictedRun(studio: Studio, methodId?: string): void {
  const state = studio.store.getState();
  const { recipe, models } = state;
  const method = methodById.get(methodId ?? '') ?? methodOf(recipe);
  const settings =
    method.id === recipe.method
      ? recipe
      : {
          ...recipe,
          method: method.id,
          parameters: {},
          contributors: recipe.contributors.map((c) => ({ ...c, parameters: shared(c.parameters, method) })),
        };
  const run = runOf(settings, models, freeId(state));
  studio.store.setState((s) => ({ runs: [...s.runs, run] }));
  showRun(studio, run.id);
}

/** The weight and density of a model, where a method has them. */
function shared(settings: Settings, { modelParameters }: MergeMethod): Settings {
  return Object.fromEntries(
    ['weight', 'density'].flatMap((name) =>
      settings[name] !== undefined && modelParameters[name] ? [[name, settings[name]]] : [],
    ),
  );
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

export function renamePredictedRun(studio: Studio, id: string, name: string | null): void {
  studio.store.setState((s) => ({
    runs: withEdited<PredictedRun>(s.runs, id, (run) => ({ ...run, name })),
  }));
}

/** Puts the settings of a predicted run into the recipe, to merge it or to go on from it. */
export function applyRun(studio: Studio, run: PredictedRun): void {
  const { models } = studio.store.getState();
  editRecipe(studio, (recipe) => recipeOfRun(run, recipe, models));
}
