import type { ModelFacts } from '../../engine/protocol-models';
import type { Recipe } from '../../formats/recipe';
import { buildRecipe } from './recipe-build';
import type { RecipeFacts } from './recipe-facts';
import { methodOf } from './studio';

/** Would merging these facts now run this very recipe? */
export function isRecipeOf(recipe: Recipe, facts: RecipeFacts, models: readonly ModelFacts[]): boolean {
  // Both come from buildRecipe, which writes keys in one order.
  return JSON.stringify(buildRecipe(facts, models, methodOf(facts))) === JSON.stringify(recipe);
}
