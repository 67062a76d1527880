import { formatModelRef, type ModelRef, parseModelRef, type Recipe, recipeModels } from '../formats/recipe';

/**
 * The distinct repositories a recipe names, `path[@revision]` as written, in the order they appear: bases, models and
 * the adapters behind a `+`.
 */
export function recipeRepositories(recipe: Recipe): string[] {
  const names = new Set<string>();
  for (const text of [...recipeModels(recipe), ...tokenizerModel(recipe)]) {
    const { model, adapter } = parseModelRef(text);
    names.add(formatModelRef({ model }));
    if (adapter) names.add(formatModelRef({ model: adapter }));
  }
  return [...names];
}

/** The same recipe with repositories renamed, e.g. a Hub id to the commit it was pinned at. */
export function renameRepositories(recipe: Recipe, renamed: ReadonlyMap<string, string>): Recipe {
  const repo = (ref: ModelRef['model']): ModelRef['model'] => {
    const name = renamed.get(formatModelRef({ model: ref }));
    return name === undefined ? ref : parseModelRef(name).model;
  };
  const rename = (text: string): string => {
    const { model, adapter } = parseModelRef(text);
    return formatModelRef(adapter ? { model: repo(model), adapter: repo(adapter) } : { model: repo(model) });
  };
  return {
    ...recipe,
    ...(recipe.baseModel === undefined ? {} : { baseModel: rename(recipe.baseModel) }),
    ...(recipe.models && { models: recipe.models.map((m) => ({ ...m, model: rename(m.model) })) }),
    ...(recipe.slices && {
      slices: recipe.slices.map((slice) => ({
        ...slice,
        ...(slice.baseModel === undefined ? {} : { baseModel: rename(slice.baseModel) }),
        sources: slice.sources.map((source) => ({ ...source, model: rename(source.model) })),
      })),
    }),
    ...(tokenizerModel(recipe).length > 0 && { tokenizerSource: rename(recipe.tokenizerSource ?? '') }),
  };
}

/** `tokenizer_source` where it names a model; `base` and `union` are words. */
function tokenizerModel({ tokenizerSource }: Recipe): string[] {
  return tokenizerSource === undefined || ['base', 'union'].includes(tokenizerSource)
    ? []
    : [tokenizerSource];
}
