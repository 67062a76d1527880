/**
 * A recipe is plain data: mergekit's YAML schema (read in mergekit `config.py`, version 0.1.4) with our named
 * extensions under `amalgam`. Everything the studio edits is a recipe; the same recipe and the same input bytes give
 * the same output bytes.
 */
export interface Recipe {
  /** Method name as mergekit spells it, e.g. `ties`. */
  mergeMethod: string;
  /** Model reference of the base, `path[@revision][+adapter[@revision]]`. */
  baseModel?: string;
  /** Exactly one of `models` and `slices` is given. */
  models?: RecipeModel[];
  slices?: RecipeSlice[];
  parameters: RecipeParameters;
  /** Output dtype; mergekit's `dtype`/`out_dtype`. Absent: the base's (else the first model's) own dtype per tensor. */
  outDtype?: 'float32' | 'float16' | 'bfloat16';
  /** Where tokenizer files come from: `base` or a model reference. */
  tokenizerSource?: string;
  amalgam: RecipeExtensions;
}

export interface RecipeModel {
  model: string;
  parameters: RecipeParameters;
}

export interface RecipeSlice {
  sources: { model: string; layerRange: [begin: number, end: number]; parameters: RecipeParameters }[];
  baseModel?: string;
  parameters: RecipeParameters;
}

/** What mergekit has no word for. Absent keys mean the default. */
export interface RecipeExtensions {
  /** Seed of every random choice, an integer in [0, 2^32). Default 0. */
  seed?: number;
  /** `mergekit` evaluates gradients of embeddings, final norm and head at t = 0; `nearest` at the nearest end. */
  gradientEnds?: 'mergekit' | 'nearest';
  /** Largest output shard in bytes. Default 2 000 000 000. */
  shardBytes?: number;
  /** What to do with NaN and Inf in the inputs or the result. Default `stop`. */
  nonFinite?: 'stop' | 'carry';
}

export type RecipeParameters = Record<string, ParameterSetting>;
export type ParameterScalar = number | boolean | string;
/** A scalar, a gradient over the layers, or filters (substring of the tensor name, first match wins). */
export type ParameterSetting = ParameterScalar | number[] | ParameterFilter[];
export interface ParameterFilter {
  /** Substring of the tensor name; absent or `*` matches every tensor. */
  filter?: string;
  value: ParameterScalar | number[];
}

export const DEFAULT_SHARD_BYTES = 2_000_000_000;

/** A parsed model reference: `path[@revision][+adapter[@revision]]` (mergekit `common.py`). */
export interface ModelRef {
  model: RepoRef;
  adapter?: RepoRef;
}
export interface RepoRef {
  path: string;
  revision?: string;
}

/** Parses a model reference; the inverse is {@link formatModelRef}. */
export function parseModelRef(text: string): ModelRef {
  const [model = '', adapter] = text.split('+', 2);
  return adapter === undefined
    ? { model: parseRepoRef(model) }
    : { model: parseRepoRef(model), adapter: parseRepoRef(adapter) };
}

function parseRepoRef(text: string): RepoRef {
  const at = text.lastIndexOf('@');
  return at > 0 ? { path: text.slice(0, at), revision: text.slice(at + 1) } : { path: text };
}

export function formatModelRef(ref: ModelRef): string {
  const repo = (r: RepoRef) => (r.revision === undefined ? r.path : `${r.path}@${r.revision}`);
  return ref.adapter ? `${repo(ref.model)}+${repo(ref.adapter)}` : repo(ref.model);
}

/** The distinct model references a recipe names, base first, in the order they appear. */
export function recipeModels(recipe: Recipe): string[] {
  const names = new Set<string>();
  if (recipe.baseModel !== undefined) names.add(recipe.baseModel);
  for (const m of recipe.models ?? []) names.add(m.model);
  for (const s of recipe.slices ?? []) {
    if (s.baseModel !== undefined) names.add(s.baseModel);
    for (const source of s.sources) names.add(source.model);
  }
  return [...names];
}

/** The recipe with every model reference replaced by what `rename` makes of it. */
export async function mapRecipeModels(
  recipe: Recipe,
  rename: (ref: string) => Promise<string>,
): Promise<Recipe> {
  const renamed = structuredClone(recipe);
  if (renamed.baseModel !== undefined) renamed.baseModel = await rename(renamed.baseModel);
  for (const m of renamed.models ?? []) m.model = await rename(m.model);
  for (const s of renamed.slices ?? []) {
    if (s.baseModel !== undefined) s.baseModel = await rename(s.baseModel);
    for (const source of s.sources) source.model = await rename(source.model);
  }
  if (renamed.tokenizerSource !== undefined && renamed.tokenizerSource !== 'base') {
    renamed.tokenizerSource = await rename(renamed.tokenizerSource);
  }
  return renamed;
}
