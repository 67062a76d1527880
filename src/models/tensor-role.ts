/** Role of a tensor in its model, by its name and shape. */
import { moduleFolder } from '../formats/module-names';
export interface TensorRole {
  /** Layer index, or null outside the stack of blocks. */
  layer: number | null;
  /** What the layers are of, where the name does not say it in front of their number. */
  stack?: string;
  /** Short module label for charts, e.g. `self_attn.q_proj`, `embed_tokens`, `norm`. */
  module: string;
  kind: 'embedding' | 'head' | 'norm' | 'linear' | 'bias' | 'other';
}

/** Place of a tensor in the flow through a model: before the blocks, in one of them, or after them. */
export type Place = 'before' | 'layer' | 'after';

/** A tensor name cut at its layer index: `model.layers.` · 7 · `mlp.up_proj.weight`. */
interface LayerName {
  /** Everything ahead of the index, the dot included; tensors with the same stack belong to one stack of blocks. */
  stack: string;
  index: number;
  rest: string;
}

/**
 * The kinds, by the end of the name; the first match wins. The spellings are those of llama, mistral, qwen, gemma,
 * phi3, olmo2, granite, smollm3, stablelm, gpt2, gpt_neox, bloom and opt in transformers, and of their relatives.
 */
const KINDS: readonly { name: RegExp; kind: TensorRole['kind'] }[] = [
  { name: /(?:^|\.)(?:lm_head|embed_out|output)\.weight$|^head\.weight$/, kind: 'head' },
  { name: /^(?:(?:(?:cls\.)?predictions\.|lm_head\.)?decoder|vocab_projector)\.weight$/, kind: 'head' },
  {
    name: /(?:^|\.)(?:embed_tokens|embed_in|embeddings|wte|word_embeddings|tok_embeddings|shared)\.weight$/,
    kind: 'embedding',
  },
  {
    name: /(?:^|\.)(?:wpe|embed_positions|position_embeddings|token_type_embeddings)\.weight$/,
    kind: 'embedding',
  },
  { name: /(?:^|[._])bias$/, kind: 'bias' },
  { name: /(?:norm|(?:^|\.)ln_[a-z0-9]+|layernorm|layer_norm)\.(?:weight|scale)$/i, kind: 'norm' },
];

/** Kinds that exist outside the blocks only: inside, `output.weight` is just another projection. */
const OUTSIDE_ONLY: ReadonlySet<TensorRole['kind']> = new Set(['embedding', 'head']);

/** Names outside the blocks that come after them; every other name outside comes before. */
const AFTER: readonly RegExp[] = [
  /(?:^|\.)(?:lm_head|embed_out|output|score|classifier|qa_outputs|pooler|project_out)\.|^head\./,
  /^(?:cls|predictions|vocab_\w+)\.|^decoder\.(?:weight|bias)$/,
  /(?:^|\.)(?:norm|ln_f|final_layer_norm|final_layernorm|final_norm|norm_f|embedding_norm)\.(?:weight|bias)$/,
];

/**
 * Buffers that some checkpoints store beside their weights: causal masks, rotary tables, position counters. They
 * follow from the config, so they are copied and never merged (newer versions of transformers register them with
 * `persistent=False` and do not store them at all).
 */
const BUFFERS: readonly RegExp[] = [
  /(?:^|\.)(?:attn|attention|self_attention)\.(?:bias|masked_bias)$/,
  /(?:^|\.)rotary_emb\.inv_freq$/,
  /(?:^|\.)(?:position_ids|num_batches_tracked)$/,
  // MiniMax: decays that follow from head and layer
  /(?:^|\.)self_attn\.(?:slope_rate|query_decay|key_decay|diagonal_decay)$/,
];

/**
 * Tensors outside the blocks with a row per token, beside embedding and head: the per-layer embeddings of Gemma 3n and
 * 4, the heads and their biases of encoders (BERT, ALBERT, RoBERTa, ModernBERT, DistilBERT, ELECTRA in transformers), of
 * encoder–decoders their copies of the embedding (T5, BART), Whisper's head, and BART's bias, which is one row of all tokens.
 */
const PER_TOKEN: readonly RegExp[] = [
  /(?:^|\.)embed_tokens_per_layer\.weight$/,
  /^(?:cls\.)?predictions\.(?:decoder\.(?:weight|bias)|bias)$/,
  /^(?:lm_head\.)?decoder\.(?:weight|bias)$/,
  /^(?:lm_head|embed_out)\.bias$/,
  /^(?:vocab_projector|generator_lm_head)\.(?:weight|bias)$/,
  /^(?:encoder|decoder)\.embed_tokens\.weight$/,
  /^proj_out\.weight$/,
  /^final_logits_bias$/,
];

/** Whether a tensor has a row per token of the vocabulary without being the embedding or the head of its model. */
export function hasTokenRows(name: string): boolean {
  return PER_TOKEN.some((pattern) => pattern.test(name));
}

/** Cuts a name at its first numeric part, or null where there is none (`model.norm.weight`). */
export function splitLayer(name: string): LayerName | null {
  const match = /^((?:.*?\.)?)(\d{1,6})\.(.+)$/.exec(name);
  return match ? { stack: match[1]!, index: Number(match[2]), rest: match[3]! } : null;
}

/** True for stored buffers that are no weights (see {@link BUFFERS}). */
export function isBuffer(name: string): boolean {
  return BUFFERS.some((pattern) => pattern.test(name));
}

/** The place of a tensor, by its name alone. */
export function tensorPlace(name: string, layer = splitLayer(name)): Place {
  if (moduleFolder(name)) return 'after';
  if (layer) return 'layer';
  return AFTER.some((pattern) => pattern.test(name)) ? 'after' : 'before';
}

/**
 * The role of a tensor, by its name and shape. Works for every model: a name of no known family takes its first
 * numeric part as the layer index, and a matrix counts as linear.
 */
export function tensorRole(name: string, shape: readonly number[]): TensorRole {
  const layer = splitLayer(name);
  const known = KINDS.find((k) => k.name.test(name) && (layer === null || !OUTSIDE_ONLY.has(k.kind)));
  const kind = isBuffer(name) ? 'other' : (known?.kind ?? (shape.length >= 2 ? 'linear' : 'other'));
  return { layer: layer?.index ?? null, module: moduleLabel(layer?.rest ?? name), kind };
}

/** `self_attn.q_proj.weight` → `self_attn.q_proj`; outside the blocks only the last part: `model.norm.weight` → `norm`. */
function moduleLabel(path: string): string {
  return path
    .replace(/\.weight$/, '')
    .replace(/^(?:(?:model|transformer|decoder|gpt_neox|language_model)\.)+/, '');
}

const PLACES: readonly Place[] = ['before', 'layer', 'after'];

interface OrderKey {
  place: number;
  stack: string;
  layer: number;
  isHead: boolean;
  parts: string[];
}

function orderKey(name: string): OrderKey {
  const layer = splitLayer(name);
  return {
    place: moduleFolder(name) ? PLACES.length : PLACES.indexOf(tensorPlace(name, layer)),
    stack: layer?.stack ?? '',
    layer: layer?.index ?? 0,
    isHead: layer === null && tensorRole(name, []).kind === 'head',
    parts: (layer?.rest ?? name).split('.'),
  };
}

/**
 * Items in the natural order of their tensor names: embeddings, blocks ascending, final norm, head; inside a block by
 * name with numbers by value. A total order, so that a plan never depends on the order of a file.
 */
export function inTensorOrder<T extends { name: string }>(items: readonly T[]): T[] {
  return items
    .map((item) => ({ item, key: orderKey(item.name) }))
    .sort((a, b) => compareKeys(a.key, b.key))
    .map(({ item }) => item);
}

function compareKeys(a: OrderKey, b: OrderKey): number {
  if (a.place !== b.place) return a.place - b.place;
  if (a.stack !== b.stack) return comparePart(a.stack, b.stack);
  if (a.layer !== b.layer) return a.layer - b.layer;
  if (a.isHead !== b.isHead) return a.isHead ? 1 : -1;
  for (const [i, part] of a.parts.entries()) {
    const other = b.parts[i];
    if (other === undefined) return 1;
    if (part !== other) return comparePart(part, other);
  }
  return a.parts.length - b.parts.length;
}

/** Two different parts of names: numbers by value, others by UTF-16 code unit (no locale: the order is fixed). */
function comparePart(a: string, b: string): number {
  const numbers = /^\d+$/.test(a) && /^\d+$/.test(b);
  return (numbers && Number(a) - Number(b)) || (a < b ? -1 : 1);
}
