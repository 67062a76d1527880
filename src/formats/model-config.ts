/**
 * A typed view of `config.json` as transformers writes it, in its old and its new spellings, and the few edits an
 * output needs. The text stays: an edited config differs from its origin in the edited fields only.
 */

import { AmalgamError } from '../errors';
import { editJsonObject, type JsonEdit, withoutMembers } from './json-edit';
import {
  booleanField,
  type ConfigFields,
  integerField,
  numberField,
  objectField,
  parseConfigFile,
  stringField,
  stringListField,
} from './json-fields';
import { counted } from './quantity';
import { isJsonNumber, type JsonObject, type JsonValue, type PlainJson } from './strict-json';

/** Spellings of a field, the current one first: transformers' `attribute_map`s of the GPT-2, T5, OPT and BLOOM families. */
const SPELLINGS = {
  layers: ['num_hidden_layers', 'n_layer', 'num_layers', 'n_layers'],
  hiddenSize: ['hidden_size', 'n_embd', 'n_embed', 'd_model'],
  intermediateSize: ['intermediate_size', 'n_inner', 'ffn_dim', 'd_ff'],
  attentionHeads: ['num_attention_heads', 'n_head', 'num_heads'],
  keyValueHeads: ['num_key_value_heads'],
  headDim: ['head_dim'],
  vocabSize: ['vocab_size'],
  dtype: ['torch_dtype', 'dtype'],
  tieWordEmbeddings: ['tie_word_embeddings'],
} as const;

const SIZES = [
  ...(['hiddenSize', 'intermediateSize', 'attentionHeads', 'keyValueHeads', 'headDim', 'vocabSize'] as const),
];

/** Most layers a config is believed to mean: twenty times the deepest published model. Lists and charts have one each. */
export const MAX_LAYERS = 4096;

/** Rows of the per-layer embeddings of Gemma 3n and 4. */
const PER_LAYER_VOCABULARY = 'vocab_size_per_layer_input';

/** Keys under which multimodal configs store the fields of their language model. */
const TEXT_CONFIG = 'text_config';

export interface ModelConfig {
  fileName: string;
  /** The file as it was read; {@link editConfig} starts from it. */
  text: string;
  /** Everything in it. */
  raw: JsonObject;
  modelType?: string;
  architectures: string[];
  layers?: number;
  hiddenSize?: number;
  intermediateSize?: number;
  attentionHeads?: number;
  keyValueHeads?: number;
  headDim?: number;
  vocabSize?: number;
  /** Dtype the weights were saved in, e.g. `bfloat16`, where the file has it. */
  dtype?: string;
  /** Base of the rotary embedding, where there is one for all layers. */
  ropeTheta?: number;
  /** Does the head share the embedding? transformers leaves the field out when it is true for the architecture too. */
  tieWordEmbeddings: boolean;
  /** Quantization method of the weights, where the config names one. */
  quantization?: string;
}

/**
 * Parses config.json. Fields that are absent stay absent; fields of the wrong kind are errors.
 * @throws AmalgamError `JsonInvalid`, `DuplicateKey`, `LimitExceeded`, `ConfigInvalid`
 */
export function parseModelConfig(text: string, fileName: string): ModelConfig {
  const top = parseConfigFile(text, fileName, 'ConfigInvalid');
  const inner = objectField(top, TEXT_CONFIG);
  const levels = inner ? [top, inner] : [top];
  const quantization = objectField(top, 'quantization_config');
  const config: ModelConfig = {
    fileName,
    text,
    raw: top.object,
    architectures: stringListField(top, 'architectures'),
    tieWordEmbeddings: first(levels, SPELLINGS.tieWordEmbeddings, booleanField) ?? true,
  };
  set(config, 'modelType', stringField(top, 'model_type'));
  set(config, 'layers', first(levels, SPELLINGS.layers, layersField));
  for (const field of SIZES) set(config, field, first(levels, SPELLINGS[field], oneInteger));
  set(config, 'dtype', first(levels, SPELLINGS.dtype, stringField)?.replace(/^torch\./, ''));
  set(config, 'ropeTheta', first(levels, ['rope_theta', 'rope_parameters', 'rotary_emb_base'], ropeTheta));
  // MLX writes the same twice, without a name
  const unnamed = objectField(top, 'quantization') ? 'MLX' : quantization && 'an unnamed method';
  set(config, 'quantization', (quantization && stringField(quantization, 'quant_method')) ?? unnamed);
  return config;
}

/** An integer; undefined for a list of them, one per layer or stage, which Gemma 3n and others have: then there is no one number. */
function oneInteger(fields: ConfigFields, key: string): number | undefined {
  const value = fields.object.get(key);
  return Array.isArray(value) && value.every(isJsonNumber) ? undefined : integerField(fields, key);
}

function layersField(fields: ConfigFields, key: string): number | undefined {
  const layers = integerField(fields, key);
  if (layers === undefined || layers <= MAX_LAYERS) return layers;
  throw new AmalgamError(
    'ConfigInvalid',
    `${fields.fileName}: the field “${key}” says ${counted(layers, 'layer')}; no model of more than ${MAX_LAYERS} is known.`,
    'Correct the file, or get it again from its author.',
  );
}

/** A number of its own (until transformers 4; GPT-NeoX has another name) or inside `rope_parameters` (from 5 on). */
function ropeTheta(fields: ConfigFields, key: string): number | undefined {
  if (key !== 'rope_parameters') return numberField(fields, key);
  const parameters = objectField(fields, key);
  return parameters && numberField(parameters, 'rope_theta');
}

function first<T>(
  levels: ConfigFields[],
  keys: readonly string[],
  read: (fields: ConfigFields, key: string) => T | undefined,
): T | undefined {
  for (const level of levels) {
    for (const key of keys) {
      const value = read(level, key);
      if (value !== undefined) return value;
    }
  }
  return undefined;
}

function set<K extends keyof ModelConfig>(
  config: ModelConfig,
  key: K,
  value: ModelConfig[K] | undefined,
): void {
  if (value !== undefined) config[key] = value;
}

/** Changes that a merge may make to a config. */
interface ConfigChanges {
  dtype?: 'float32' | 'float16' | 'bfloat16';
  tieWordEmbeddings?: boolean;
  vocabSize?: number;
  /** For each layer of the output the layer of the origin it comes from: sets their number and per-layer lists. */
  layerOrder?: readonly number[];
  /** Other fields, wherever they stand. */
  fields?: ReadonlyMap<string, PlainJson>;
  /** Fields that are taken out, at the top. */
  without?: readonly string[];
}

/**
 * The text of the config with only these fields changed: every spelling that is present, at the top and in
 * `text_config`; one that is absent is added at the top.
 */
export function editConfig(config: ModelConfig, changes: ConfigChanges): string {
  const inner = config.raw.get(TEXT_CONFIG);
  const levels = inner instanceof Map ? [config.raw, inner] : [config.raw];
  const edits = levels.map(() => new Map<string, JsonEdit>());
  const change = (keys: readonly string[], value: PlainJson | undefined) => {
    if (value === undefined) return;
    let found = false;
    for (const [i, level] of levels.entries()) {
      for (const key of keys) {
        if (!level.has(key)) continue;
        found = true;
        if (!same(level.get(key)!, value)) edits[i]!.set(key, value);
      }
    }
    if (!found) edits[0]!.set(keys[0]!, value);
  };
  change(SPELLINGS.dtype, changes.dtype);
  change(SPELLINGS.tieWordEmbeddings, changes.tieWordEmbeddings);
  change(SPELLINGS.vocabSize, changes.vocabSize);
  if (levels.some((level) => level.has(PER_LAYER_VOCABULARY))) {
    change([PER_LAYER_VOCABULARY], changes.vocabSize);
  }
  if (changes.layerOrder) {
    const { layerOrder } = changes;
    change(SPELLINGS.layers, layerOrder.length);
    for (const [i, level] of levels.entries()) {
      for (const key of perLayerLists(level, config.layers)) {
        edits[i]!.set(key, (list) => pick(list, layerOrder));
      }
    }
  }
  for (const [field, value] of changes.fields ?? []) change([field], value);
  const [top, nested] = edits;
  if (nested && nested.size > 0) top!.set(TEXT_CONFIG, (text) => editJsonObject(text, nested));
  return withoutMembers(editJsonObject(config.text, top!), changes.without ?? []);
}

function same(old: JsonValue, value: PlainJson): boolean {
  return isJsonNumber(old) ? old.text === String(value) : old === value;
}

/** Names of lists with one entry per layer: `layer_types`, `no_rope_layers`, `mlp_layer_types`, `attention_layers`. */
function perLayerLists(level: JsonObject, layers: number | undefined): string[] {
  return [...level]
    .filter(([key, value]) => key.includes('layer') && Array.isArray(value) && value.length === layers)
    .map(([key]) => key);
}

/** Entries of a list of texts, integers or booleans in another order. */
function pick(list: string, order: readonly number[]): string {
  const items = JSON.parse(list) as unknown[];
  return JSON.stringify(order.map((layer) => items[layer]));
}
