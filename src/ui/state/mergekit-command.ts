/** The merge as a command: mergekit's and Amalgam's own. Pure. */
import { DEFAULT_SHARD_BYTES, parseModelRef, type Recipe } from '../../formats/recipe';
import { recipeModels } from '../../formats/recipe-models';

/**
 * mergekit 0.1.4's command for a recipe in the file `<name>.yml`. Its shards count bytes too (`parse_kmb`: B is 10⁹), but
 * hold 5 · 10⁹ of them unless told.
 */
export function mergekitCommand(recipe: Recipe, name: string): string {
  const size = recipe.amalgam.shardBytes ?? DEFAULT_SHARD_BYTES;
  const shards = size % 1e9 === 0 ? `${size / 1e9}B` : String(size);
  // mergekit folds an adapter into a copy of its model first, and asks where to
  const adapters = recipeModels(recipe).some((ref) => parseModelRef(ref).adapter)
    ? ` --lora-merge-cache ./${name}-adapters`
    : '';
  const seed = recipe.amalgam.seed ? ` --random-seed ${recipe.amalgam.seed}` : '';
  return recipe.stages
    ? `mergekit-multi ${name}.yml --intermediate-dir ./${name}-stages --out-path ./${name} --out-shard-size ${shards}${adapters}${seed}`
    : `mergekit-yaml ${name}.yml ./${name} --out-shard-size ${shards}${adapters}${seed}`;
}

/** The same bytes from a terminal, by Amalgam's own command. */
export function amalgamCommand(name: string): string {
  return `npm run --silent amalgam -- merge ${name}.yml --out ./${name}`;
}
