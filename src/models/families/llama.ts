import type { Family } from '../family';

/**
 * Llama and everything that names its tensors like it (transformers: modeling_llama.py and the files derived from it).
 * The defaults of `tie_word_embeddings` are those of the configuration classes.
 */
export const llama: Family = {
  id: 'llama',
  modelTypes: {
    llama: { tiedByDefault: false },
    mistral: { tiedByDefault: false },
    mixtral: { tiedByDefault: false },
    qwen2: { tiedByDefault: false },
    qwen2_moe: { tiedByDefault: false },
    qwen3: { tiedByDefault: false },
    qwen3_moe: { tiedByDefault: false },
    phi: { tiedByDefault: false },
    phi3: { tiedByDefault: false },
    olmo: { tiedByDefault: false },
    olmo2: { tiedByDefault: false },
    olmo3: { tiedByDefault: false },
    granite: { tiedByDefault: false },
    stablelm: { tiedByDefault: false },
    smollm3: { tiedByDefault: true },
    starcoder2: { tiedByDefault: true },
    cohere: { tiedByDefault: true },
    cohere2: { tiedByDefault: true },
    gemma: { tiedByDefault: true },
    gemma2: { tiedByDefault: true },
    gemma3_text: { tiedByDefault: true },
  },
  prefix: 'model.',
  embedding: 'model.embed_tokens.weight',
  head: 'lm_head.weight',
  stack: 'model.layers.',
  linearStorage: 'out_in',
  variesByIndex: ['gemma2', 'gemma3_text', 'cohere2', 'smollm3', 'olmo3', 'qwen2_moe', 'qwen3_moe'],
};
