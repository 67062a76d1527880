const BYTE_LEVEL = { type: 'ByteLevel', add_prefix_space: false, trim_offsets: true, use_regex: true };

/** A byte-level tokenizer.json of so many tokens, without merges. */
export function byteLevelTokenizer(vocab: number): string {
  const ids = Array.from({ length: vocab }, (_, id) => [String.fromCodePoint(0x100 + id), id]);
  return JSON.stringify({
    version: '1.0',
    added_tokens: [],
    pre_tokenizer: BYTE_LEVEL,
    decoder: BYTE_LEVEL,
    model: { type: 'BPE', vocab: Object.fromEntries(ids), merges: [] },
  });
}

/** A llama of one thin layer with so many rows; its weights are zeros. */
export function thinModel(vocab: number): {
  config: string;
  tensors: { name: string; dtype: 'F32'; shape: number[] }[];
} {
  const layer = 'model.layers.0.';
  const shapes: Record<string, number[]> = {
    'model.embed_tokens.weight': [vocab, 32],
    [`${layer}input_layernorm.weight`]: [32],
    [`${layer}post_attention_layernorm.weight`]: [32],
    ...Object.fromEntries(
      ['self_attn.q_proj', 'self_attn.k_proj', 'self_attn.v_proj', 'self_attn.o_proj'].map((name) => [
        `${layer}${name}.weight`,
        [32, 32],
      ]),
    ),
    ...Object.fromEntries(
      ['gate_proj', 'up_proj', 'down_proj'].map((name) => [`${layer}mlp.${name}.weight`, [32, 32]]),
    ),
    'model.norm.weight': [32],
  };
  return {
    config: JSON.stringify({
      ...{ model_type: 'llama', hidden_size: 32, intermediate_size: 32, num_hidden_layers: 1 },
      ...{ num_attention_heads: 1, vocab_size: vocab, rms_norm_eps: 1e-5, tie_word_embeddings: true },
    }),
    tensors: Object.entries(shapes).map(([name, shape]) => ({ name, dtype: 'F32', shape })),
  };
}
