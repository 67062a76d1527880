/** Checkpoints of real shapes, by their tensors. */

export interface Shape {
  name: string;
  layers: number;
  hidden: number;
  ffn: number;
  vocabulary: number;
  heads: number;
  keyHeads: number;
  headDim: number;
  family: 'qwen2' | 'llama';
}

/** Qwen2.5-0.5B: 494 M parameters. */
export const QWEN_05B: Shape = {
  name: 'qwen-0.5b',
  layers: 24,
  hidden: 896,
  ffn: 4864,
  vocabulary: 151_936,
  heads: 14,
  keyHeads: 2,
  headDim: 64,
  family: 'qwen2',
};

/** The same with 2 layers and a small vocabulary: 38 M parameters, for runs before and after a change. */
export const QWEN_SLICE: Shape = { ...QWEN_05B, name: 'qwen-slice', layers: 2, vocabulary: 9496 };

/** Llama-3.2-1B: 1.24 G parameters. */
export const LLAMA_1B: Shape = {
  name: 'llama-1.2b',
  layers: 16,
  hidden: 2048,
  ffn: 8192,
  vocabulary: 128_256,
  heads: 32,
  keyHeads: 8,
  headDim: 64,
  family: 'llama',
};

/** Llama-3.2-3B: 3.2 G parameters. */
export const LLAMA_3B: Shape = {
  name: 'llama-3b',
  layers: 28,
  hidden: 3072,
  ffn: 8192,
  vocabulary: 128_256,
  heads: 24,
  keyHeads: 8,
  headDim: 128,
  family: 'llama',
};

/** The linear modules of a layer with [out, in]. */
export function linears(shape: Shape): [module: string, rows: number, cols: number][] {
  const q = shape.heads * shape.headDim;
  const kv = shape.keyHeads * shape.headDim;
  return [
    ['mlp.down_proj', shape.hidden, shape.ffn],
    ['mlp.gate_proj', shape.ffn, shape.hidden],
    ['mlp.up_proj', shape.ffn, shape.hidden],
    ['self_attn.k_proj', kv, shape.hidden],
    ['self_attn.o_proj', shape.hidden, q],
    ['self_attn.q_proj', q, shape.hidden],
    ['self_attn.v_proj', kv, shape.hidden],
  ];
}

/** Elements of all linear modules. */
function linearElements(shape: Shape): number {
  return shape.layers * linears(shape).reduce((sum, [, rows, cols]) => sum + rows * cols, 0);
}

/** Floating point operations of the matrix products that score `tokens` tokens, attention left out. */
export function evaluationFlops(shape: Shape, tokens: number): number {
  return 2 * tokens * (linearElements(shape) + shape.vocabulary * shape.hidden);
}

/**
 * The same for importance without compensation: the linear modules on `tokens` tokens, and half of XᵀX for each of a
 * layer's four inputs.
 */
export function importanceFlops(shape: Shape, tokens: number): number {
  const inputs = [shape.hidden, shape.heads * shape.headDim, shape.hidden, shape.ffn];
  const grams = shape.layers * tokens * inputs.reduce((sum, width) => sum + width ** 2, 0);
  return 2 * tokens * linearElements(shape) + grams;
}

/** Every tensor in the order of its name, as checkpoints on the Hub have them. Tied heads are not stored. */
export function tensorsOf(shape: Shape): [name: string, shape: number[]][] {
  const layer = (i: number): [string, number[]][] => [
    [`model.layers.${i}.input_layernorm.weight`, [shape.hidden]],
    [`model.layers.${i}.post_attention_layernorm.weight`, [shape.hidden]],
    ...linears(shape).flatMap(([module, rows, cols]): [string, number[]][] => [
      ...(shape.family === 'qwen2' && /[qkv]_proj/.test(module)
        ? [[`model.layers.${i}.${module}.bias`, [rows]] as [string, number[]]]
        : []),
      [`model.layers.${i}.${module}.weight`, [rows, cols]],
    ]),
  ];
  const all: [string, number[]][] = [
    ['model.embed_tokens.weight', [shape.vocabulary, shape.hidden]],
    ...Array.from({ length: shape.layers }, (_, i) => layer(i)).flat(),
    ['model.norm.weight', [shape.hidden]],
  ];
  return all.sort(([a], [b]) => (a < b ? -1 : 1));
}

/** `config.json` of the shape. */
export function configOf(shape: Shape): Record<string, unknown> {
  return {
    architectures: [shape.family === 'qwen2' ? 'Qwen2ForCausalLM' : 'LlamaForCausalLM'],
    model_type: shape.family,
    hidden_size: shape.hidden,
    intermediate_size: shape.ffn,
    num_attention_heads: shape.heads,
    num_key_value_heads: shape.keyHeads,
    head_dim: shape.headDim,
    num_hidden_layers: shape.layers,
    vocab_size: shape.vocabulary,
    max_position_embeddings: 4096,
    rms_norm_eps: 1e-6,
    rope_theta: 1_000_000,
    hidden_act: 'silu',
    tie_word_embeddings: true,
    torch_dtype: 'bfloat16',
  };
}
