/** The models a recipe names, its stages' included. The name of a stage is no model: it stands for that stage's output. */
import { COMBINATIONS_OF } from './adapter-combination';
import { formatModelRef, parseModelRef, type Recipe, type RepoRef } from './recipe';

type OneRecipe = Omit<Recipe, 'stages'>;

/** The distinct model references a recipe and its stages name, base first, in the order they appear. */
export function recipeModels(recipe: Recipe): string[] {
  const stages = stageNames(recipe);
  const named = parts(recipe).flatMap((part) => places({ ...part, tokenizerSource: 'base' }));
  return [...new Set(named)].filter((ref) => !stages.has(parseModelRef(ref).model.path));
}

/**
 * The distinct repositories a recipe names, `path[@revision]` as written, in the order they appear: bases, models, the
 * adapters behind a `+`, and the tokenizer's.
 */
export function recipeRepositories(recipe: Recipe): string[] {
  const stages = stageNames(recipe);
  const names = new Set<string>();
  for (const text of parts(recipe).flatMap(places)) {
    const { model, adapter } = parseModelRef(text);
    if (!stages.has(model.path)) names.add(formatModelRef({ model }));
    if (adapter) names.add(formatModelRef({ model: adapter }));
  }
  return [...names];
}

/**
 * The repositories of {@link recipeRepositories} that are read to write the output: of LoRAs that become a LoRA the adapters
 * alone, unless a GGUF file of it needs the config of their base, they are run on it, or the merge's change is cut.
 */
export function repositoriesRead(recipe: Recipe): string[] {
  const { output, gguf, combination, energy } = recipe.amalgam;
  const runs = recipe.mergeMethod === 'gram' && recipe.parameters.match !== 'changes';
  const refs = (recipe.models ?? []).map(({ model }) => parseModelRef(model));
  const isCut =
    combination === 'merged_svd' ||
    !Object.hasOwn(COMBINATIONS_OF, recipe.mergeMethod) ||
    (combination === undefined && (energy !== undefined || refs.some(({ adapter }) => !adapter)));
  const ofFactors = output === 'adapter' && gguf === undefined && !recipe.stages && !runs && !isCut;
  if (!ofFactors) return recipeRepositories(recipe);
  return [...new Set(refs.map(({ model, adapter }) => formatModelRef({ model: adapter ?? model })))];
}

/** Names of the stages that one recipe of several takes its models from. */
export function stagesNamed(recipe: OneRecipe, stages: ReadonlySet<string>): string[] {
  return [...new Set(places(recipe).map((ref) => parseModelRef(ref).model.path))].filter((name) =>
    stages.has(name),
  );
}

/** The same recipe with repositories renamed, e.g. a Hub id to the commit it was pinned at. Names of stages stay. */
export function renameRepositories(recipe: Recipe, renamed: ReadonlyMap<string, string>): Recipe {
  const stages = stageNames(recipe);
  const repo = (ref: RepoRef): RepoRef => {
    const name = stages.has(ref.path) ? undefined : renamed.get(formatModelRef({ model: ref }));
    return name === undefined ? ref : parseModelRef(name).model;
  };
  const rename = (text: string): string => {
    const { model, adapter } = parseModelRef(text);
    return formatModelRef(adapter ? { model: repo(model), adapter: repo(adapter) } : { model: repo(model) });
  };
  const copy = structuredClone(recipe);
  for (const part of parts(copy)) {
    eachPlace(part, rename);
    for (const { source } of part.tokenizer?.tokens ?? []) {
      if (source.kind !== 'zero') source.model = rename(source.model);
    }
  }
  return copy;
}

/** The stages in their order, the recipe itself last. */
function parts(recipe: Recipe): OneRecipe[] {
  return [...(recipe.stages ?? []), recipe];
}

function stageNames(recipe: Recipe): ReadonlySet<string> {
  return new Set(recipe.stages?.map((stage) => stage.name));
}

/** Every place of one recipe that names a model. */
function places(recipe: OneRecipe): string[] {
  const named: string[] = [];
  eachPlace(structuredClone(recipe), (ref) => {
    named.push(ref);
    return ref;
  });
  return named;
}

/** Puts something else in the place of every model that a recipe names; `base` and `union` are no tokenizer's model. */
function eachPlace(recipe: OneRecipe, change: (ref: string) => string): void {
  const { tokenizerSource } = recipe;
  const based = (place: { baseModel?: string }) => {
    if (place.baseModel !== undefined) place.baseModel = change(place.baseModel);
  };
  based(recipe);
  for (const entry of recipe.models ?? []) entry.model = change(entry.model);
  for (const slice of recipe.slices ?? []) {
    based(slice);
    for (const source of slice.sources) source.model = change(source.model);
  }
  if (tokenizerSource !== undefined && !['base', 'union'].includes(tokenizerSource)) {
    recipe.tokenizerSource = change(tokenizerSource);
  }
}
