/** Config fields that depend on the index of a layer, family by family, and their values for restacked layers. */
import { isJsonNumber, type JsonValue, type PlainJson, plainJson } from '../formats/strict-json';

/**
 * `indices`: a list of layers · `first`, `last`: how many of the first or last ones · `upto`: the last one, −1 for all ·
 * `list`: an entry for each layer · `text`: a character for each · `cycle`: a list that repeats ·
 * `keys`: an object with layers as keys · `every`: layers i with (i + shift) mod n = rest, unless a list has it instead.
 */
type IndexField =
  | { field: string; kind: 'indices' | 'first' | 'last' | 'upto' | 'list' | 'text' | 'cycle' | 'keys' }
  | {
      field: string;
      kind: 'every';
      orElse: number;
      shift?: number;
      offset?: { field: string; orElse: number };
      unless?: string;
    };

const first = (field: string): IndexField => ({ field, kind: 'first' });
const indices = (field: string): IndexField => ({ field, kind: 'indices' });
const list = (field: string): IndexField => ({ field, kind: 'list' });
/** Every n-th, beginning with layer n − 1. */
const every = (field: string, orElse: number, unless?: string): IndexField => ({
  field,
  kind: 'every',
  orElse,
  shift: 1,
  ...(unless !== undefined && { unless }),
});
const period = (field: string, offset: string, [n, rest]: readonly [number, number]): IndexField => ({
  field,
  kind: 'every',
  orElse: n,
  offset: { field: offset, orElse: rest },
});

const dense = [first('first_k_dense_replace')];
const sparse = [indices('mlp_only_layers'), every('decoder_sparse_step', 1)];
const gemma: IndexField[] = [
  { field: 'num_kv_shared_layers', kind: 'last' },
  { field: 'per_layer_config', kind: 'keys' },
  list('intermediate_size'),
  list('activation_sparsity_pattern'),
];
const llama4 = [indices('moe_layers'), every('interleave_moe_layer_step', 1, 'moe_layers')];
const ernie: IndexField[] = [
  first('moe_layer_start_index'),
  { field: 'moe_layer_end_index', kind: 'upto' },
  every('moe_layer_interval', 1),
];
const qwenHybrid = every('full_attention_interval', 4, 'layer_types');

/** By `model_type`; lists whose name speaks of layers (`layer_types`, `no_rope_layers`) go without saying. */
const FIELDS: Readonly<Record<string, readonly IndexField[]>> = {
  deepseek: dense,
  deepseek_v2: dense,
  deepseek_v3: dense,
  glm4_moe: dense,
  glm4_moe_lite: dense,
  dots1: dense,
  kimi_k2: dense,
  ernie4_5_moe: ernie,
  lfm2: [indices('full_attn_idxs')],
  lfm2_moe: [first('num_dense_layers'), indices('full_attn_idxs')],
  bamba: [indices('attn_layer_indices')],
  llama4_text: llama4,
  llama4: llama4,
  recurrent_gemma: [
    { field: 'block_types', kind: 'cycle' },
    { field: '_block_types', kind: 'cycle' },
  ],
  nemotron_h: [{ field: 'hybrid_override_pattern', kind: 'text' }],
  qwen2_moe: sparse,
  qwen3_moe: sparse,
  qwen3_vl_moe: sparse,
  qwen3_next: [...sparse, qwenHybrid],
  qwen3_5: [qwenHybrid],
  qwen3_5_text: [qwenHybrid],
  qwen3_5_moe: [qwenHybrid],
  qwen3_5_moe_text: [qwenHybrid],
  jamba: [
    period('attn_layer_period', 'attn_layer_offset', [8, 4]),
    period('expert_layer_period', 'expert_layer_offset', [2, 1]),
  ],
  gemma3n: gemma,
  gemma3n_text: gemma,
  gemma4: gemma,
  gemma4_text: gemma,
  zamba2: [indices('hybrid_layer_ids')],
  modernbert: [{ field: 'global_attn_every_n_layers', kind: 'every', orElse: 3, unless: 'layer_types' }],
  openelm: [list('num_query_heads'), list('num_kv_heads'), list('ffn_multipliers')],
};

/** Whether it is known which fields of a type depend on the index of a layer. */
export function knowsIndexFields(modelType: string): boolean {
  return Object.hasOwn(FIELDS, modelType);
}

/**
 * The fields of a config for layers stacked anew.
 *
 * @param read the value of a field, wherever the config has those of its layers
 * @param layers their number before
 * @param order for every layer of the output the layer it comes from
 * @returns new values, and the fields whose meaning the new order does not have
 */
export function restackFields(
  modelType: string,
  read: (field: string) => JsonValue | undefined,
  layers: number,
  order: readonly number[],
): { fields: Map<string, PlainJson>; unsaid: string[] } {
  const fields = new Map<string, PlainJson>();
  const unsaid: string[] = [];
  for (const entry of FIELDS[modelType] ?? []) {
    const value =
      entry.kind === 'every' ? everyValue(entry, read, order) : newValue(entry, read, layers, order);
    if (value === 'unsaid') unsaid.push(entry.field);
    else if (value !== undefined) fields.set(entry.field, value.is);
  }
  return { fields, unsaid };
}

type NewValue = { is: PlainJson } | 'unsaid' | undefined;

function newValue(
  { field, kind }: Exclude<IndexField, { kind: 'every' }>,
  read: (field: string) => JsonValue | undefined,
  layers: number,
  order: readonly number[],
): NewValue {
  const value = read(field) ?? undefined;
  if (value === undefined) return undefined;
  const number = isJsonNumber(value) ? Number(value.text) : undefined;
  if (kind === 'text') {
    return typeof value === 'string' && value.length === layers
      ? { is: order.map((layer) => value[layer]!).join('') }
      : undefined;
  }
  if (kind === 'keys') {
    if (!(value instanceof Map)) return undefined;
    const moved = order.flatMap((layer, i) =>
      value.has(String(layer)) ? [[String(i), plainJson(value.get(String(layer))!)] as const] : [],
    );
    const others = [...value].flatMap(([key, v]) =>
      /^\d+$/.test(key) ? [] : [[key, plainJson(v)] as const],
    );
    return { is: Object.fromEntries([...others, ...moved]) };
  }
  if (Array.isArray(value)) {
    const entries = value.map(plainJson);
    if (kind === 'indices') return { is: order.flatMap((layer, i) => (entries.includes(layer) ? [i] : [])) };
    if (kind === 'cycle') return { is: order.map((layer) => entries[layer % entries.length]!) };
    return kind === 'list' && entries.length === layers
      ? { is: order.map((layer) => entries[layer]!) }
      : undefined;
  }
  if (number === undefined) return undefined;
  if (kind === 'first') return leading(order, (layer) => layer < number);
  if (kind === 'upto' && number >= 0) return leading(order, (layer) => layer <= number, -1);
  return kind === 'last' ? leading(order.toReversed(), (layer) => layer >= layers - number) : undefined;
}

/** How many lead the order, where no other is among them, and `more`. */
function leading(order: readonly number[], isOne: (layer: number) => boolean, more = 0): NewValue {
  const found = order.findIndex((layer) => !isOne(layer));
  const count = found < 0 ? order.length : found;
  return order.slice(count).some(isOne) ? 'unsaid' : { is: count + more };
}

function everyValue(
  { field, orElse, shift = 0, offset, unless }: Extract<IndexField, { kind: 'every' }>,
  read: (field: string) => JsonValue | undefined,
  order: readonly number[],
): NewValue {
  if (unless !== undefined && Array.isArray(read(unless))) return undefined;
  const at = (name: string, other: number) => {
    const value = read(name);
    return isJsonNumber(value ?? null) ? Number((value as { text: string }).text) : other;
  };
  const n = at(field, orElse);
  const rest = offset ? at(offset.field, offset.orElse) : 0;
  const isOne = (layer: number) => (layer + shift - rest) % n === 0;
  return order.every((layer, i) => isOne(layer) === isOne(i)) ? undefined : 'unsaid';
}
