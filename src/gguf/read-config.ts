/**
 * The config.json of a model in a GGUF file: hyperparameters.ts the other way. What a number is called follows from the wiring; the
 * config that is made has to say again, key by key, what the file says, or the model is refused.
 */
import { AmalgamError } from '../errors';
import { type ModelConfig, parseModelConfig } from '../formats/model-config';
import { displayName } from '../formats/names';
import type { Architecture } from '../models/architecture';
import type { FlagField, NumberField } from '../models/config-reader';
import { familyOf } from '../models/families';
import { GGUF_ARCHITECTURES, type GgufArchitecture } from '../models/gguf-architectures';
import { resolveArchitecture } from '../models/resolution';
import type { Wiring } from '../models/wiring';
import { READ_TYPES } from './block-types';
import { hyperparameters, requireExpressible, ropeFactors } from './hyperparameters';
import type { MetadataValue, StoredBlocks } from './read-header';

/** A whole model: of a file, or of the files that it is split into. */
export interface StoredModel {
  fileName: string;
  metadata: ReadonlyMap<string, MetadataValue>;
  tensors: ReadonlyMap<string, StoredBlocks>;
  /** The values of a small tensor of F32 that follows from the config: divisors of rotary frequencies. */
  factors: ReadonlyMap<string, Float32Array>;
}

export interface ReadConfig {
  config: ModelConfig;
  architecture: Architecture;
  gguf: GgufArchitecture;
}

/** Tensors that follow from the config. */
export const FACTORS = ['rope_freqs.weight', 'rope_factors_long.weight', 'rope_factors_short.weight'];

/**
 * @param own the text of a config.json beside the file, which is taken where it says what the file does
 * @throws AmalgamError `GgufUnsupported` for what is no model that is known here, or says what its config cannot
 */
export function ggufConfig(model: StoredModel, own?: string): ReadConfig {
  const { metadata, fileName } = model;
  const [modelType, gguf] = modelTypeOf(model);
  requireBelievable(model, gguf);
  const beside = own === undefined ? undefined : configBeside(model, own, gguf);
  if (beside) return beside;
  const texts = [undefined, ...LLAMA3_ORIGINALS].map((original) =>
    JSON.stringify(configFields(model, modelType, gguf, original), null, 2),
  );
  for (const text of model.factors.has('rope_freqs.weight') ? texts.slice(1) : texts.slice(0, 1)) {
    const config = parseModelConfig(text, `${fileName} (config)`);
    const architecture = resolveArchitecture(config);
    requireExpressible(architecture, gguf);
    if (!hasFactors(model, architecture)) continue;
    requireSame(model, architecture, gguf, config);
    return { config, architecture, gguf };
  }
  throw unread(
    metadata,
    `${displayName(fileName)} scales its rotary frequencies in a way that no config says`,
  );
}

/** Layers times experts: the largest models have 23 000. */
const MOST_EXPERTS = 2 ** 20;

/** Lists are made as long as these numbers say. @throws AmalgamError `ConfigInvalid` for one that no tensor bears out */
function requireBelievable({ metadata, tensors, fileName }: StoredModel, gguf: GgufArchitecture): void {
  const extents = [...tensors.values()].map(({ shape }) => shape.reduce((a, b) => Math.max(a, b), 1));
  const longest = extents.reduce((a, b) => Math.max(a, b), 1);
  const at = (key: string) => plainNumber(metadata.get(`${gguf.name}.${key}`)) ?? 0;
  const heads = at('attention.head_count');
  const bounds: [key: string, said: number, most: number][] = [
    ['block_count', at('block_count'), tensors.size],
    ['embedding_length', at('embedding_length'), longest],
    ['feed_forward_length', at('feed_forward_length'), gguf.experts ? MOST_EXPERTS : longest],
    ['attention.head_count', heads, longest],
    ['attention.key_length', heads * at('attention.key_length'), longest],
    ['attention.head_count_kv', at('attention.head_count_kv'), longest],
    ['rope.dimension_count', at('rope.dimension_count'), longest],
    ['expert_count', at('expert_count'), longest],
    ['expert_count', at('expert_count') * at('block_count'), MOST_EXPERTS],
  ];
  const wrong = bounds.find(([, said, most]) => said > most);
  if (!wrong) return;
  throw new AmalgamError(
    'ConfigInvalid',
    `${displayName(fileName)} says ${gguf.name}.${wrong[0]} = ${at(wrong[0])}, and its tensors are too small for that.`,
    'The file is damaged. Get it again.',
  );
}

/** One beside the file may be another's, or a stub that names the type alone. */
function configBeside(model: StoredModel, text: string, gguf: GgufArchitecture): ReadConfig | undefined {
  try {
    const config = parseModelConfig(text, 'config.json');
    if (GGUF_ARCHITECTURES[config.modelType ?? '']?.name !== gguf.name) return undefined;
    const architecture = resolveArchitecture(config);
    requireSame(model, architecture, gguf, config);
    if (!hasFactors(model, architecture)) return undefined;
    return architecture.final.tied === !model.tensors.has('output.weight')
      ? { config, architecture, gguf: GGUF_ARCHITECTURES[config.modelType!]! }
      : undefined;
  } catch (thrown) {
    if (thrown instanceof AmalgamError) return undefined;
    throw thrown;
  }
}

function modelTypeOf({ metadata, fileName }: StoredModel): [modelType: string, gguf: GgufArchitecture] {
  const name = metadata.get('general.architecture');
  if (metadata.get('general.type') === 'adapter') {
    throw new AmalgamError(
      'AdapterUnsupported',
      `${displayName(fileName)} is a LoRA as llama.cpp takes it, which is not read.`,
      'Use the adapter that it was made of: adapter_config.json with adapter_model.safetensors.',
    );
  }
  const hasExperts = Number(metadata.get(`${name}.expert_count`) ?? 0) > 0;
  const found = Object.entries(GGUF_ARCHITECTURES).find(
    ([, one]) => one.name === name && (one.experts !== undefined) === hasExperts,
  );
  if (found) return found;
  throw unread(
    metadata,
    `${displayName(fileName)} holds a model of type “${displayName(String(name))}”, which is not read from GGUF`,
  );
}

function unread(metadata: StoredModel['metadata'], what: string): AmalgamError {
  const name = metadata.get('general.base_model.0.repo_url') ?? metadata.get('general.basename');
  const of = typeof name === 'string' ? `, ${displayName(name)} by its own words` : '';
  return new AmalgamError('GgufUnsupported', `${what}.`, `Use the safetensors that it was made of${of}.`);
}

/** Where Llama 3's scaling began to count: the frequencies alone do not say it. */
const LLAMA3_ORIGINALS = [8192, 4096, 2048, 16_384, 32_768, 65_536, 131_072];

function configFields(
  { metadata, tensors, factors }: StoredModel,
  modelType: string,
  gguf: GgufArchitecture,
  original: number | undefined,
): Record<string, unknown> {
  const wiring = familyOf(modelType)!.modelTypes[modelType]!.wiring!;
  const { sizes, norm, attention, mlp, experts, embedding, head } = wiring;
  const fields: Record<string, unknown> = {
    ...{ architectures: [className(modelType)], model_type: modelType, torch_dtype: torchDtype(tensors) },
  };
  const set = (field: { fields: readonly string[] } | FlagField | undefined, value: unknown) => {
    if (typeof field !== 'object' || value === undefined) return;
    const names = 'fields' in field ? field.fields : [field.field];
    const name = names.find((one) => !one.includes('.')) ?? names[0];
    if (name !== undefined) fields[name] = value;
  };
  const at = (key: string) => plainNumber(metadata.get(`${gguf.name}.${key}`));
  const extent = (name: string, axis: number) => tensors.get(name)?.shape.at(axis);
  const has = (...modules: string[]) => modules.some((module) => tensors.has(`blk.0.${module}.bias`));

  const [heads, hidden] = [at('attention.head_count') ?? 1, at('embedding_length') ?? 1];
  const headDim = at('attention.key_length') ?? hidden / heads;
  set(sizes.layers, at('block_count'));
  set(sizes.hidden, hidden);
  set(sizes.heads, heads);
  set(sizes.keyValueHeads, at('attention.head_count_kv') ?? heads);
  set(sizes.headDim, headDim);
  if (typeof sizes.inner === 'object') set(sizes.inner, at('feed_forward_length'));
  fields.vocab_size = extent('token_embd.weight', 0);
  const positions = embedding.positions?.count ?? { fields: ['max_position_embeddings'] };
  set(positions, extent('position_embd.weight', 0) ?? at('context_length'));
  fields.tie_word_embeddings = !tensors.has('output.weight');
  set(norm.epsilon, at('attention.layer_norm_rms_epsilon') ?? at('attention.layer_norm_epsilon'));
  set(wiring.parallel, metadata.get(`${gguf.name}.use_parallel_residual`));
  set(attention.outputBias, has('attn_output'));
  set(attention.bias, has('attn_q', 'attn_qkv'));
  set(mlp.bias, has('ffn_up', 'ffn_down'));
  set(mlp.activation, mlp.activation.orElse);
  set(attention.softcap, at('attn_logit_softcapping'));
  set(head.softcap, at('final_logit_softcapping'));
  const isSpread = at('block_count') === gguf.hiddenScaleLayers;
  if (typeof attention.scale === 'object') {
    if ('root' in attention.scale) set(attention.scale.root, isSpread ? hidden / heads : headDim);
    else set(attention.scale.factor, at('attention.scale') ?? headDim ** -0.5);
  }
  if (typeof embedding.scale === 'object') set(embedding.scale, at('embedding_scale'));
  if (wiring.residualScale && 'fields' in wiring.residualScale)
    set(wiring.residualScale, at('residual_scale'));
  set(head.divisor, at('logit_scale'));
  if (experts) {
    set(experts.inner, extent('blk.0.ffn_down_exps.weight', -1));
    set(experts.count, at('expert_count'));
    set(experts.chosen, at('expert_used_count'));
    set(experts.router.normalized?.when, gguf.experts!.normalized);
    set(experts.shared?.inner, extent('blk.0.ffn_down_shexp.weight', -1));
  }
  for (const [key, value] of windowFields(wiring, metadata, gguf)) set(key, value);
  const pattern = windowPattern(
    metadata.get(`${gguf.name}.attention.sliding_window_pattern`),
    at('block_count'),
  );
  if (gguf.windows === 'pattern' && pattern) fields.layer_types = pattern;
  if (typeof attention.position === 'object') {
    const { fraction, local } = attention.position;
    const base = fraction?.fields.includes('rotary_pct') ? 'rotary_emb_base' : 'rope_theta';
    fields[base] = at('rope.freq_base') ?? 10_000;
    set(local, at('rope.freq_base_swa'));
    const dims = at('rope.dimension_count') ?? headDim;
    // what comes out is rounded down
    set(fraction, Math.floor((dims / headDim) * headDim) === dims ? dims / headDim : (dims + 0.5) / headDim);
    const scaling = scalingFields({ metadata, factors }, gguf, original);
    if (scaling) fields.rope_scaling = scaling;
  }
  for (const [token, key] of Object.entries({ bos: 'bos', eos: 'eos', pad: 'padding' })) {
    const id = metadata.get(`tokenizer.ggml.${key}_token_id`);
    if (typeof id === 'number') fields[`${token}_token_id`] = id;
  }
  // a turn of a chat may end otherwise than a text
  const [end, turn] = [fields.eos_token_id, metadata.get('tokenizer.ggml.eot_token_id')];
  if (typeof turn === 'number' && turn !== end) fields.eos_token_id = end === undefined ? turn : [end, turn];
  return fields;
}

/** The size of windows where llama.cpp's graph has them; elsewhere its layers see everything. */
function windowFields(
  { attention: { window } }: Wiring,
  metadata: StoredModel['metadata'],
  gguf: GgufArchitecture,
): [NumberField | FlagField, unknown][] {
  if (!window) return [];
  const size = plainNumber(metadata.get(`${gguf.name}.attention.sliding_window`));
  const isFollowed = gguf.windows !== undefined || gguf.name === 'phi3';
  if (isFollowed && size) return [[window.size, size]];
  return window.enabled ? [[window.enabled, false]] : [[window.size, null]];
}

/** As a list by layer, or as the number of layers of which the last one sees everything. */
function windowPattern(said: MetadataValue | undefined, layers = 0): string[] | undefined {
  const type = (isLocal: unknown) => (isLocal ? 'sliding_attention' : 'full_attention');
  if (Array.isArray(said)) return said.map(type);
  if (typeof said !== 'number' || said < 1) return undefined;
  return Array.from({ length: layers }, (_, i) => type((i + 1) % said !== 0));
}

function scalingFields(
  { metadata, factors }: Pick<StoredModel, 'metadata' | 'factors'>,
  gguf: GgufArchitecture,
  original: number | undefined,
): Record<string, unknown> | undefined {
  const at = (key: string) => plainNumber(metadata.get(`${gguf.name}.rope.scaling.${key}`));
  const typed = (type: string, more: Record<string, unknown>) => ({ rope_type: type, type, ...more });
  const before = { original_max_position_embeddings: at('original_context_length') };
  const frequencies = factors.get('rope_freqs.weight');
  if (frequencies) {
    return typed('llama3', {
      ...{ factor: frequencies.at(-1), low_freq_factor: 1, high_freq_factor: 4 },
      original_max_position_embeddings: original,
    });
  }
  const [long, short] = ['long', 'short'].map((name) => factors.get(`rope_factors_${name}.weight`));
  if (long && short) {
    return typed('longrope', {
      ...{ ...before, attention_factor: at('attn_factor') },
      ...{ long_factor: [...long].map(shortest), short_factor: [...short].map(shortest) },
    });
  }
  switch (metadata.get(`${gguf.name}.rope.scaling.type`)) {
    case 'linear':
      return typed('linear', { factor: at('factor') });
    case 'yarn':
      return typed('yarn', {
        ...{ factor: at('factor'), ...before },
        ...{ beta_fast: at('yarn_beta_fast'), beta_slow: at('yarn_beta_slow') },
      });
    default:
      return undefined;
  }
}

/** Whether the config's divisors of the frequencies are those of the file. */
function hasFactors({ factors }: StoredModel, architecture: Architecture): boolean {
  const made = ropeFactors(architecture);
  if (made.length !== factors.size) return false;
  return made.every(([name, values]) => {
    const stored = factors.get(name);
    return stored?.length === values.length && values.every((value, i) => isNear(value, stored[i]!));
  });
}

/** Settings that change nothing that is computed, or whose tensors say it. */
const HARMLESS =
  /^(?:vocab_size|tensor_data_layout|rope\.dimension_count_swa|rope\.scaling\.(?:finetuned|original_context_length)|attention\.(?:(?:key|value)_length_swa|causal)|expert_(?:shared_)?(?:feed_forward_length|count))$/;
/** Those that change nothing where they are 1. */
const FACTOR = /scale|factor|gating_func/;

/** Those that the config may say otherwise: a longer context, and the width of an MLP that a model of experts has in name only. */
const LOOSE = /^(?:vocab_size|context_length|attention\.sliding_window_pattern)$/;

/** @throws AmalgamError `GgufUnsupported` naming the first key that the config does not say */
function requireSame(
  { metadata, fileName }: StoredModel,
  architecture: Architecture,
  gguf: GgufArchitecture,
  config: ModelConfig,
): void {
  const said = new Map(hyperparameters(architecture, gguf, config));
  const contextLength = metadata.get(`${gguf.name}.context_length`);
  for (const [key, stored] of metadata) {
    if (!key.startsWith(`${gguf.name}.`)) continue;
    const made = said.get(key);
    const short = key.slice(gguf.name.length + 1);
    // a list of one number is that number
    const list = Array.isArray(stored) ? stored : [stored];
    const same = (value: unknown, one: unknown) =>
      typeof value === 'number' ? isNear(Number(one), value) : one === value;
    if (made === undefined) {
      const isNeutral = (one: unknown) => !one || one === 'none' || (one === 1 && FACTOR.test(short));
      const isBeyond = short === 'attention.sliding_window' && Number(stored) >= Number(contextLength);
      if (HARMLESS.test(short) || isBeyond || list.every(isNeutral)) continue;
    } else if ('values' in made) {
      const { values } = made;
      if (LOOSE.test(short) || list.every((one, i) => same(values[i], one))) continue;
    } else if (LOOSE.test(short) || list.every((one) => same(made.value, one))) continue;
    else if (gguf.experts && short === 'feed_forward_length') continue;
    throw unread(
      metadata,
      `${displayName(fileName)} says ${displayName(`${key} = ${list.slice(0, 4).join(', ')}`)}, which its model cannot be told here`,
    );
  }
}

function isNear(a: number, b: number): boolean {
  return Math.abs(a - b) <= 1e-5 * Math.abs(b);
}

/** A number, or the one that all of a list are. */
function plainNumber(value: MetadataValue | undefined): number | undefined {
  const [first, ...others] = Array.isArray(value) ? (value as unknown[]) : [value];
  if (typeof first !== 'number' || others.some((other) => other !== first)) return undefined;
  return shortest(first);
}

/** The shortest decimal of a number that was stored as f32. */
function shortest(value: number): number {
  if (Number.isInteger(value) || Math.fround(value) !== value) return value;
  for (let digits = 1; digits < 9; digits++) {
    const short = Number(value.toPrecision(digits));
    if (Math.fround(short) === value) return short;
  }
  return value;
}

/** The dtype in which most of the weights are, or are written. */
function torchDtype(tensors: StoredModel['tensors']): string {
  const bytes = new Map<number, number>();
  for (const { type, begin, end } of tensors.values()) bytes.set(type, (bytes.get(type) ?? 0) + end - begin);
  const most = [...bytes].toSorted((a, b) => b[1] - a[1])[0]?.[0] ?? 0;
  const { name } = READ_TYPES.get(most)!;
  return { F32: 'float32', F16: 'float16' }[name] ?? 'bfloat16';
}

/** Names of transformers' classes that do not follow from the type. */
const CLASSES: Readonly<Record<string, string>> = {
  gpt2: 'GPT2LMHeadModel',
  gpt_neox: 'GPTNeoXForCausalLM',
  smollm3: 'SmolLM3ForCausalLM',
  stablelm: 'StableLmForCausalLM',
  gemma3_text: 'Gemma3ForCausalLM',
  hunyuan_v1_dense: 'HunYuanDenseV1ForCausalLM',
  ernie4_5: 'Ernie4_5ForCausalLM',
  granitemoe: 'GraniteMoeForCausalLM',
};

function className(modelType: string): string {
  const camel = modelType.replaceAll(/(?:^|_)([a-z])/g, (_, letter: string) => letter.toUpperCase());
  return CLASSES[modelType] ?? `${camel}ForCausalLM`;
}
