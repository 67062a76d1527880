/** Who is measured: base, contributors, the recipe's merge, and the merge by every other method that fits. Pure. */

import { repositoriesOf } from '../../formats/recipe';
import { recipeRepositories } from '../../formats/recipe-models';
import type { MergeMethod } from '../../merge/method';
import { methodById, methods } from '../../merge/methods/index';
import type { RunTarget } from '../../reports/evaluate';
import type { ModelInfo } from '../../reports/models';
import { buildRecipe, contributorId, methodTitle, shortName } from './built-recipe';
import { type RecipeState, setMethod, setParameter } from './recipe-state';
import { recipeProblems } from './recipe-validation';

export interface EvaluationRow {
  /** `base`, `model <ref>` or `method <id>`. */
  id: string;
  group: 'models' | 'merges';
  label: string;
  /** Id in the recipe, or the full title of the method. */
  title: string;
  /** Index of the contributor's color. */
  color: number | null;
  target: RunTarget;
  /** For a merge: its method. */
  method: MergeMethod | null;
  /** The merge of the recipe as it stands. */
  current: boolean;
  /** A Gram merge that matches outputs, beside the one that reads inputs. */
  matched?: true;
  /** Measured separately, after all others: it runs every model over text first. */
  last?: true;
}

/**
 * Every row the table can have, in order. A method fits when choosing it in the recipe would leave nothing to fix; it
 * takes weights and densities from the recipe as the method picker would. A method that runs the models over text first
 * (minutes, where others take seconds) comes last.
 */
export function evaluationRows(recipe: RecipeState, models: readonly ModelInfo[]): EvaluationRow[] {
  const rows: EvaluationRow[] = [];
  const fitting = [...methods]
    .sort((a, b) => Number(readsTexts(a)) - Number(readsTexts(b)))
    .flatMap((method) => variantsOf(recipe, method))
    .filter(({ method, recipe }) => recipeProblems(recipe, models, method).length === 0);
  const labels = fitting.map((fit) => fit.label);
  if (recipe.base !== null) {
    rows.push(modelRow('base', shortName(recipe.base), recipe.base, null));
  }
  for (const { ref, color } of recipe.contributors.filter((c) => c.enabled)) {
    rows.push(modelRow(`model ${ref}`, shortName(ref), contributorId(recipe.base, ref, models), color));
  }
  for (const { id, method, recipe, label, current, matched } of fitting) {
    // Some methods share the name of their paper; the recipe's word distinguishes them.
    const alone = labels.indexOf(label) === labels.lastIndexOf(label);
    rows.push({
      id,
      group: 'merges',
      label: alone ? label : `${label} (${method.id})`,
      title: method.title,
      color: null,
      target: { recipe: buildRecipe(recipe, models, method) },
      method,
      current,
      ...(matched && { matched }),
      ...(readsTexts(method) ? { last: true } : {}),
    });
  }
  return rows;
}

interface Variant {
  id: string;
  method: MergeMethod;
  recipe: RecipeState;
  label: string;
  current: boolean;
  matched?: true;
}

/** The merge by a method: of the Gram merge that reads inputs also the one that matches outputs, behind it. */
function variantsOf(recipe: RecipeState, method: MergeMethod): Variant[] {
  const by = recipeByMethod(recipe, method);
  const { id } = method;
  const own = {
    id: `method ${id}`,
    method,
    recipe: by,
    label: methodTitle(by, method),
    current: id === recipe.method,
  };
  const { match } = method.parameters;
  if (match?.default !== 'inputs' || (by.parameters.match ?? match.default) !== 'inputs') return [own];
  const matched: Variant = {
    ...own,
    id: `${own.id} outputs`,
    recipe: matchingOutputs(by),
    label: `${own.label}, outputs matched`,
    current: false,
    matched: true,
  };
  return [own, matched];
}

const matchingOutputs = (recipe: RecipeState) => setParameter(recipe, 'match', 'outputs');

/** The recipe that a row of a merge stands for. */
export function recipeOfRow(
  recipe: RecipeState,
  { method, matched }: Pick<EvaluationRow, 'method' | 'matched'>,
): RecipeState {
  if (!method) return recipe;
  const by = recipeByMethod(recipe, method);
  return matched ? matchingOutputs(by) : by;
}

/** Whether a merge by this method runs every model over text first. */
function readsTexts({ compute }: MergeMethod): boolean {
  return compute.kind === 'solved';
}

/** The recipe by another method, as the method picker makes it; by its own method, the recipe itself. */
export function recipeByMethod(recipe: RecipeState, method: MergeMethod): RecipeState {
  return method.id === recipe.method ? recipe : setMethod(recipe, methodById.get(recipe.method), method);
}

/** Key of a target: recipes that merge the same are the same target. */
export function targetKey(target: RunTarget): string {
  // Both come from buildRecipe, which writes keys in one order.
  return 'model' in target ? `model ${target.model}` : `recipe ${JSON.stringify(target.recipe)}`;
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

function modelRow(id: string, label: string, model: string, color: number | null): EvaluationRow {
  const target = { model };
  return { id, group: 'models', label, title: model, color, target, method: null, current: false };
}
