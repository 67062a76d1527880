import type { Combination } from './adapter-combination';
import type { GgufType } from './gguf-type';
import type { YamlData } from './yaml-text';

/**
 * A recipe is plain data: mergekit's YAML schema (read in mergekit `config.py`, version 0.1.4) with our named
 * extensions under `amalgam`. Everything the studio edits is a recipe; the same recipe and the same input bytes give
 * the same output bytes.
 */
export interface Recipe {
  /** Name of the recipe; mergekit reads it in recipes of several documents only. */
  name?: string;
  /**
   * Recipes merged before this one, each after those it needs: their names stand for their outputs wherever a model is
   * named (documents of one file, as mergekit-multi reads them). None of them has stages of its own.
   */
  stages?: RecipeStage[];
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
  /** The vocabulary of the output: `base`, `union`, or the model that has it. Absent: all models share one. */
  tokenizerSource?: string;
  /** Further settings of the vocabulary; only beside `tokenizerSource`. */
  tokenizer?: RecipeTokenizer;
  /** Chat template of the output: `auto`, the name of a built-in one, or Jinja. Absent: the tokenizer's own. */
  chatTemplate?: string;
  amalgam: RecipeExtensions;
  ignored?: IgnoredKeys;
}

/** Recipe of a model as it is. Of several models it only names them, in their order: no plan of it is clean. */
export function copyOf(...models: string[]): Recipe {
  return {
    mergeMethod: 'passthrough',
    models: models.map((model) => ({ model, parameters: {} })),
    parameters: {},
    amalgam: {},
  };
}

/** Keys that mergekit silently drops: without effect, named by the plan and written back with the recipe. */
export type IgnoredKeys = Readonly<Record<string, YamlData>>;

/** Keys of a recipe as it is written. */
export const RECIPE_KEYS = [
  'name',
  'merge_method',
  'base_model',
  'models',
  'slices',
  'parameters',
  'dtype',
  'out_dtype',
  'tokenizer_source',
  'tokenizer',
  'chat_template',
  'modules',
  'amalgam',
];

export type RecipeStage = Omit<Recipe, 'stages'> & { name: string };

export interface RecipeModel {
  model: string;
  parameters: RecipeParameters;
  ignored?: IgnoredKeys;
}

export interface RecipeSource extends RecipeModel {
  layerRange: [begin: number, end: number];
}

export interface RecipeSlice {
  sources: RecipeSource[];
  baseModel?: string;
  parameters: RecipeParameters;
  ignored?: IgnoredKeys;
}

/** One place of a recipe that has parameters, and what it is called in messages. */
export interface RecipeLevel {
  kind: 'recipe' | 'model' | 'slice' | 'source';
  where: string;
  parameters: RecipeParameters;
  ignored?: IgnoredKeys;
}

/** Every place of a recipe that has parameters, in reading order. */
export function recipeLevels(recipe: Omit<Recipe, 'stages'>): RecipeLevel[] {
  const level = (
    kind: RecipeLevel['kind'],
    where: string,
    { parameters, ignored }: Pick<RecipeLevel, 'parameters' | 'ignored'>,
  ): RecipeLevel => ({ kind, where, parameters, ...(ignored && { ignored }) });
  return [
    level('recipe', 'the recipe', recipe),
    ...(recipe.models ?? []).map((model) => level('model', model.model, model)),
    ...(recipe.slices ?? []).flatMap((slice, i) => [
      level('slice', `slice ${i + 1}`, slice),
      ...slice.sources.map((source) => level('source', `${source.model} in slice ${i + 1}`, source)),
    ]),
  ];
}

/** The key of a setting in YAML: `gradientEnds` → `gradient_ends`. */
export function yamlKey(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

/** Settings unknown to mergekit. Absent keys have their default. */
export interface RecipeExtensions {
  /** Seed of every random choice, an integer in [0, 2^32). Default 0. */
  seed?: number;
  /** `mergekit` evaluates gradients of embeddings, final norm and head at t = 0; `nearest` at the nearest end. */
  gradientEnds?: 'mergekit' | 'nearest';
  /** Largest output shard in bytes. Default 2 000 000 000. */
  shardBytes?: number;
  /** Treatment of NaN and Inf in the inputs or the result. Default `stop`. */
  nonFinite?: 'stop' | 'carry';
  /** Only tensors that one of these patterns means are merged; the others keep the base's bytes. Default: all. */
  include?: string[];
  /** Tensors that one of these patterns means keep the base's bytes, also where `include` names them. */
  exclude?: string[];
  /** `adapter`: the output is a LoRA of the base. */
  output?: 'model' | 'adapter';
  /** How it comes about; by default the first of {@link COMBINATIONS_OF} the method where all contributors are LoRAs and no energy is named, else `merged_svd`. */
  combination?: Combination;
  /** Rank of an adapter that is cut from singular values, the most of `merged_svd` by energy. Default: the largest of the inputs. */
  rank?: number;
  /** Share of each module's ‖Δ‖² that `merged_svd` keeps. Default, where there is no rank either: 0.95. */
  energy?: number;
  /** Also writes the result as GGUF, for llama.cpp and what is built on it. */
  gguf?: GgufType;
  /** Writes the GGUF file and no safetensors. */
  ggufOnly?: boolean;
  /**
   * Text that the importance matrix of the GGUF file is measured on: a text's name, `self`, or `off`. Default: the calibration
   * text of the models, where they have one.
   */
  imatrix?: string;
}

/** The rest of mergekit's `tokenizer` (its `tokenizer/config.py`, version 0.1.4); `source` is `tokenizerSource`. */
interface RecipeTokenizer {
  /** Tokens whose embedding is chosen; those that the vocabulary lacks are added to it, in this order. */
  tokens?: RecipeToken[];
  /** Embedding and head are filled up to a multiple of so many rows. */
  padToMultipleOf?: number;
}

export interface RecipeToken {
  token: string;
  source: TokenSource;
  /** True: every model takes the embedding of the source; else only those that do not have the token. */
  force?: boolean;
}

export type TokenSource =
  | { kind: 'zero' }
  | { kind: 'model'; model: string }
  | { kind: 'model_token'; model: string; token: string }
  | { kind: 'model_token'; model: string; tokenId: number };

export type RecipeParameters = Record<string, ParameterSetting>;
export type ParameterScalar = number | boolean | string;
/** A scalar, a gradient over the layers, or filters by tensor name (the first that matches holds). */
export type ParameterSetting = ParameterScalar | number[] | ParameterFilter[];
export interface ParameterFilter {
  /** Part of the tensor name, or a glob for all of it (formats/tensor-pattern.ts); absent or `*` means every tensor. */
  filter?: string;
  value: ParameterScalar | number[];
}

export const DEFAULT_SHARD_BYTES = 2_000_000_000;

/** A parsed model reference: `path[@revision][+adapter[@revision]]` (mergekit `common.py`). */
interface ModelRef {
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

/** `model` and `adapter` of `model+adapter`, as a recipe would name each alone. */
export function repositoriesOf(ref: string): [model: string] | [model: string, adapter: string] {
  const { model, adapter } = parseModelRef(ref);
  const path = formatModelRef({ model });
  return adapter ? [path, formatModelRef({ model: adapter })] : [path];
}

/** A model reference in its one spelling. */
export function canonicalRef(text: string): string {
  return formatModelRef(parseModelRef(text));
}

/**
 * The curve at position `t` in [0, 1], 0 at the first layer and 1 at the last: what a gradient means in mergekit
 * (`config.py`, evaluate_setting). NaN without points.
 */
export function curveAt(points: readonly number[], t: number): number {
  const scaled = t * (points.length - 1);
  const left = Math.floor(scaled);
  const right = Math.min(points.length - 1, left + 1);
  const fraction = scaled - left;
  return (1 - fraction) * (points[left] ?? Number.NaN) + fraction * (points[right] ?? Number.NaN);
}
