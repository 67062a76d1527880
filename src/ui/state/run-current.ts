import type { Recipe } from '../../formats/recipe';
import type { ModelFacts } from '../../reports/models';
import { buildRecipe } from './recipe-build';
import type { RecipeFacts } from './recipe-facts';
import { methodOf } from './studio';

/** Would merging these facts now run this very recipe? One that was read from YAML has its keys in another order. */
export function isRecipeOf(recipe: Recipe, facts: RecipeFacts, models: readonly ModelFacts[]): boolean {
  return recipeKey(buildRecipe(facts, models, methodOf(facts))) === recipeKey(recipe);
}

const keys = new WeakMap<Recipe, string>();

/** One text for equal recipes. */
export function recipeKey(recipe: Recipe): string {
  const known = keys.get(recipe);
  if (known !== undefined) return known;
  const key = JSON.stringify(recipe, (_, value: unknown) =>
    typeof value === 'object' && value !== null && !Array.isArray(value)
      ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
      : value,
  );
  keys.set(recipe, key);
  return key;
}
