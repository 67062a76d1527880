/** Who is measured: base, contributors, the recipe's merge, its other runs, and what was tried in memory. Pure. */

import { formatSetting } from '../../formats/quantity';
import { type Recipe, repositoriesOf } from '../../formats/recipe';
import { recipeRepositories } from '../../formats/recipe-models';
import type { MergeMethod } from '../../merge/method';
import { methodById } from '../../merge/methods/index';
import type { RunTarget } from '../../reports/evaluate';
import { type BestRow, overfitWords } from '../../reports/find-best';
import type { ModelInfo } from '../../reports/models';
import { methodName } from '../format/method-name';
import { runNames } from '../layers/runs';
import { buildRecipe, contributorId, methodTitle, shortName } from './built-recipe';
import { deltaKey } from './delta-statistics';
import { belongsTo, recipeModelIds } from './past-runs';
import { withSettingsOf } from './predicted-runs';
import { recipeKey } from './recipe-identity';
import type { RecipeState } from './recipe-state';
import { recipeProblems } from './recipe-validation';
import { type FinishedRun, finishedRuns, NOW, predictedRuns } from './runs';
import { methodOf, type StudioState } from './studio';

export interface EvaluationRow {
  /** `base`, `model <ref>`, `run <id>` or `tried <id>`. */
  id: string;
  group: 'models' | 'runs' | 'tried';
  label: string;
  /** Id in the recipe, or the full title of the method. */
  title: string;
  /** Index of the contributor's color. */
  color: number | null;
  /** Place among the runs shown side by side, by which it has a letter; −1 without one. */
  place: number;
  target: RunTarget;
  /** For a merge: its method. */
  method: MergeMethod | null;
  /** λ in words; empty where there is none. */
  lambda: string;
  /** The merge of the recipe as it stands. */
  current: boolean;
  /** The finished merge, whose files are there. */
  run?: FinishedRun;
  tried?: BestRow;
  /** That it fits the text it was tuned on, in words. */
  overfit?: string;
}

/** Base, contributors, and the merge of the recipe where it leaves nothing to fix. */
export function evaluationRows(recipe: RecipeState, models: readonly ModelInfo[]): EvaluationRow[] {
  const rows: EvaluationRow[] = [];
  if (recipe.base !== null) rows.push(modelRow('base', shortName(recipe.base), recipe.base, null));
  for (const { ref, color } of recipe.contributors.filter((c) => c.enabled)) {
    rows.push(modelRow(`model ${ref}`, shortName(ref), contributorId(recipe.base, ref, models), color));
  }
  const method = methodOf(recipe);
  if (!recipe.contributors.some((c) => c.enabled) || recipeProblems(recipe, models, method).length > 0) {
    return rows;
  }
  const made = buildRecipe(recipe, models, method);
  const label = methodTitle(recipe, method);
  rows.push({ ...mergeRow(`run ${NOW}`, 'runs', label, made), current: true });
  return rows;
}

/** Every row of the table: runs of these models, the recipe first; what was tried for them; the models. */
export function tableRows(
  state: Pick<StudioState, 'recipe' | 'models' | 'runs' | 'view' | 'measure'>,
): EvaluationRow[] {
  const { recipe, models, view, measure } = state;
  const own = evaluationRows(recipe, models);
  const now = own.find((row) => row.current);
  const key = modelsKey(recipe, models);
  const ids = recipeModelIds({ recipe, models });
  const planned = predictedRuns(state)
    .filter((run) => run.of === deltaKey({ recipe, models }))
    .map((run) => {
      const of = withSettingsOf(recipe, run.recipe, models);
      return { id: run.id, recipe: buildRecipe(of, models, methodOf(of)), given: run.name };
    });
  const finished = finishedRuns(state)
    .filter((run) => belongsTo({ ...run, recipe: run.report.recipe }, ids))
    .map((run) => ({ id: run.id, recipe: run.report.recipe, given: run.name ?? null, run }));
  const seen = new Set<string>();
  const all = [
    ...(now && 'recipe' in now.target ? [{ id: NOW, recipe: now.target.recipe, given: null }] : []),
    ...planned,
    ...finished,
  ].filter((of) => !seen.has(recipeKey(of.recipe)) && seen.add(recipeKey(of.recipe)));
  const names = runNames(all.map((of) => ({ ...of, method: methodIn(of.recipe) })));
  const runs = all.map(({ id, recipe: made }, i): EvaluationRow => {
    const run = finished.find((of) => recipeKey(of.recipe) === recipeKey(made))?.run;
    return {
      ...mergeRow(`run ${id}`, 'runs', names[i]!, made),
      place: view.runs.indexOf(id),
      current: id === NOW,
      ...(run && { run }),
    };
  });
  const { rows: found = [], texts = [] } = (measure.found?.of === key && measure.found) || {};
  const isAccuracy = texts.some(({ kind }) => kind === 'task');
  const tried = found.flatMap((row): EvaluationRow[] => {
    if (row.kind === 'base' || row.kind === 'contributor' || !('recipe' in row.target)) return [];
    const lambda = row.lambda === null ? '' : formatSetting(row.lambda, 0.01);
    const made = mergeRow(`tried ${row.id}`, 'tried', row.label, row.target.recipe);
    const overfit = overfitWords(row, found, isAccuracy);
    const more = { lambda, tried: row, ...(overfit !== null && { overfit }) };
    const merged = recipeKey(row.target.recipe);
    return seen.has(merged) || !seen.add(merged) ? [] : [{ ...made, ...more }];
  });
  return [...runs, ...tried, ...own.filter((row) => row.group === 'models')];
}

/** Key of the models that a recipe merges, in whatever order. */
export function modelsKey(recipe: RecipeState, models: readonly ModelInfo[]): string {
  return modelsOf(buildRecipe(recipe, models, methodOf(recipe)), recipe.base);
}

/** @param base a method that works without one does not name it */
function modelsOf({ models = [], baseModel }: Recipe, base: string | null): string {
  const names = models.map(({ model }) => model).filter((model) => model !== base);
  return JSON.stringify([baseModel ?? base, ...names.sort()]);
}

function methodIn({ mergeMethod }: Recipe): MergeMethod {
  return methodById.get(mergeMethod) ?? methodById.get('passthrough')!;
}

function modelRow(id: string, label: string, model: string, color: number | null): EvaluationRow {
  return {
    ...{ id, group: 'models', label, title: model, color, place: -1, target: { model } },
    ...{ method: null, lambda: '', current: false },
  };
}

function mergeRow(id: string, group: 'runs' | 'tried', label: string, recipe: Recipe): EvaluationRow {
  const { lambda } = recipe.parameters;
  const method = methodIn(recipe);
  return {
    ...{ id, group, label, title: methodName(method), color: null, place: -1, target: { recipe }, method },
    lambda:
      typeof lambda === 'number' ? formatSetting(lambda, 0.01) : lambda === undefined ? '' : String(lambda),
    current: false,
  };
}

/** Key of a target: recipes that merge the same are the same target. */
export function targetKey(target: RunTarget): string {
  return 'model' in target ? `model ${target.model}` : `recipe ${recipeKey(target.recipe)}`;
}

/**
 * Does the target's name stand for the same weights on another day? So do samples and commits on the Hub; a folder on the
 * person's disk may hold others by then.
 */
export function isPinned(target: RunTarget, models: readonly ModelInfo[]): boolean {
  const refs = 'recipe' in target ? recipeRepositories(target.recipe) : repositoriesOf(target.model);
  const pinned = new Set(models.filter((m) => m.origin === 'sample' || m.origin === 'hub').map((m) => m.ref));
  return refs.every((ref) => pinned.has(ref));
}
