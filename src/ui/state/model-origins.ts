/** Origins of the models of a recipe, saved with it: they open the models again, and show whether they are the same. Pure. */

import { formatModelRef, parseModelRef, repositoriesOf } from '../../formats/recipe';
import { recipeRepositories, renameRepositories } from '../../formats/recipe-models';
import type { ModelInfo } from '../../reports/models';
import { contributorId } from './built-recipe';
import type { ModelOrigin, Origins, RecipeState } from './recipe-state';

/** Hub names as they were asked for, with the pinned name each was opened under. */
export type Pins = Readonly<Record<string, string>>;

/** The origin of an opened model. */
export function originOf({ origin, bytes, headers }: ModelInfo): ModelOrigin {
  return origin === 'sample' || origin === 'hub'
    ? { kind: origin }
    : { kind: 'local', was: { bytes, headers } };
}

/** Whether an opened model has the tensors and the size of the one the recipe was made with. */
export function isSameModel(origin: ModelOrigin | undefined, model: ModelInfo): boolean {
  if (origin?.kind !== 'local' || !origin.was) return true;
  return origin.was.bytes === model.bytes && origin.was.headers === model.headers;
}

/** Every model the recipe names, adapters apart from what they sit on. @param all those switched off too */
export function namedModels({ base, contributors, asWritten }: RecipeState, all: boolean): string[] {
  if (asWritten) return recipeRepositories(asWritten);
  const refs = [base, ...contributors.filter((c) => all || c.enabled).map((c) => c.ref)];
  return [...new Set(refs.filter((ref) => ref !== null).flatMap(repositoriesOf))];
}

/** A name that only a hub can have: `owner/name` at a commit. */
export function isPinnedName(ref: string): boolean {
  return /^[\w.-]+(\/[\w.-]+)?@[0-9a-f]{40}$/.test(ref);
}

/**
 * The recipe with what is known of its models: names of the Hub at the commit they were opened at, opened adapters by
 * their own name, and the origin of every model that is or was open. The same object when nothing changes.
 * @param before origins known so far
 */
export function withOpened(
  recipe: RecipeState,
  before: Origins,
  models: readonly ModelInfo[],
  pins: Pins,
): RecipeState {
  return withOrigins(renamed(recipe, before, models, pins), before, models);
}

function withOrigins(recipe: RecipeState, before: Origins, models: readonly ModelInfo[]): RecipeState {
  const origins = Object.fromEntries(
    namedModels(recipe, true).flatMap((name) => {
      const model = models.find((m) => m.ref === name);
      const known = recipe.origins[name] ?? before[name];
      const isNew = !known || (known.kind === 'local' && !known.was);
      const origin = isNew && model ? originOf(model) : known;
      return origin ? [[name, origin]] : [];
    }),
  );
  const same =
    Object.keys(origins).length === Object.keys(recipe.origins).length &&
    Object.entries(origins).every(([name, origin]) => recipe.origins[name] === origin);
  return same ? recipe : { ...recipe, origins };
}

function renamed(
  recipe: RecipeState,
  before: Origins,
  models: readonly ModelInfo[],
  pins: Pins,
): RecipeState {
  const names = new Map<string, string>();
  for (const name of namedModels(recipe, true)) {
    const pinned = pins[name];
    const isLocal = (recipe.origins[name] ?? before[name])?.kind === 'local';
    if (pinned !== undefined && !isLocal && !models.some((m) => m.ref === name)) names.set(name, pinned);
  }
  const base = recipe.base === null ? null : (names.get(recipe.base) ?? recipe.base);
  const own = (ref: string): string => {
    const { model, adapter } = parseModelRef(ref);
    const part = (repo: typeof model) => {
      const name = formatModelRef({ model: repo });
      return parseModelRef(names.get(name) ?? name).model;
    };
    if (!adapter) return formatModelRef({ model: part(model) });
    const whole = formatModelRef({ model: part(model), adapter: part(adapter) });
    const alone = formatModelRef({ model: part(adapter) });
    const isAdapter = models.some((m) => m.ref === alone && m.kind === 'adapter');
    return isAdapter && contributorId(base, alone, models) === whole ? alone : whole;
  };
  const refs = recipe.contributors.map((c) => own(c.ref));
  if (names.size === 0 && recipe.contributors.every((c, i) => c.ref === refs[i])) return recipe;
  const source = recipe.tokenizerSource;
  return {
    ...recipe,
    base,
    contributors: recipe.contributors.map((c, i) => ({ ...c, ref: refs[i]! })),
    tokenizerSource: source === null ? null : own(source),
    asWritten: recipe.asWritten && renameRepositories(recipe.asWritten, names),
  };
}
