import { type Recipe, repositoriesOf } from '../../formats/recipe';
import { recipeModels } from '../../formats/recipe-models';
import { buildRecipe, type OpenModel } from './built-recipe';
import type { RecipeState } from './recipe-state';
import { methodOf } from './studio';

/**
 * Would merging this state now run this very recipe? One that was read from YAML has its keys in another order. Models
 * that are not open are taken for what the recipe has them for: an adapter, or a base of this dtype.
 */
export function isRecipeOf(recipe: Recipe, now: RecipeState, models: readonly OpenModel[]): boolean {
  if (recipe.mergeMethod !== (now.asWritten?.mergeMethod ?? now.method)) return false;
  const closed = adaptersOf(recipe).filter((ref) => !models.some((m) => m.ref === ref));
  const known = [...models, ...closed.map((ref): OpenModel => ({ ref, kind: 'adapter', dtypes: {} }))];
  const built = buildRecipe(now, known, methodOf(now));
  const isBaseOpen = now.base === null || models.some((m) => m.ref === now.base);
  const { outDtype } = isBaseOpen ? built : recipe;
  return recipeKey(outDtype === undefined ? built : { ...built, outDtype }) === recipeKey(recipe);
}

function adaptersOf(recipe: Recipe): string[] {
  return recipeModels(recipe).flatMap((ref) => repositoriesOf(ref).slice(1));
}

const keys = new WeakMap<Recipe, string>();

/** One text for equal recipes. */
export function recipeKey(recipe: Recipe): string {
  const known = keys.get(recipe);
  if (known !== undefined) return known;
  const key = canonicalText(recipe);
  keys.set(recipe, key);
  return key;
}

/** The JSON of a value with the keys of its objects in one order. */
export function canonicalText(value: object): string {
  return JSON.stringify(value, (_, v: unknown) =>
    typeof v === 'object' && v !== null && !Array.isArray(v)
      ? Object.fromEntries(Object.entries(v).sort(([a], [b]) => (a < b ? -1 : 1)))
      : v,
  );
}
