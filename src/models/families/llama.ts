import type { Family } from '../family';
import { gemma, gemma2, gemma3 } from '../wirings/gemma';
import {
  granite,
  llama as llamaWiring,
  mistral,
  olmo2,
  phi3,
  qwen2,
  qwen3,
  smollm3,
  stablelm,
} from '../wirings/llama';

/**
 * Llama and everything that names its tensors like it (transformers: modeling_llama.py and the files derived from it).
 * The defaults of `tie_word_embeddings` are those of the configuration classes.
 */
export const llama: Family = {
  id: 'llama',
  modelTypes: {
    llama: { tiedByDefault: false, wiring: llamaWiring },
    mistral: { tiedByDefault: false, wiring: mistral },
    mixtral: { tiedByDefault: false },
    qwen2: { tiedByDefault: false, wiring: qwen2 },
    qwen2_moe: { tiedByDefault: false },
    qwen3: { tiedByDefault: false, wiring: qwen3 },
    qwen3_moe: { tiedByDefault: false },
    phi: { tiedByDefault: false },
    phi3: { tiedByDefault: false, wiring: phi3 },
    olmo: { tiedByDefault: false },
    olmo2: { tiedByDefault: false, wiring: olmo2 },
    olmo3: { tiedByDefault: false },
    granite: { tiedByDefault: false, wiring: granite },
    stablelm: { tiedByDefault: false, wiring: stablelm },
    smollm3: { tiedByDefault: true, wiring: smollm3 },
    starcoder2: { tiedByDefault: true },
    cohere: { tiedByDefault: true },
    cohere2: { tiedByDefault: true },
    gemma: { tiedByDefault: true, wiring: gemma },
    gemma2: { tiedByDefault: true, wiring: gemma2 },
    gemma3_text: { tiedByDefault: true, wiring: gemma3 },
  },
  prefix: 'model.',
  embedding: 'model.embed_tokens.weight',
  head: 'lm_head.weight',
  stack: 'model.layers.',
  linearStorage: 'out_in',
  variesByIndex: ['gemma2', 'gemma3_text', 'cohere2', 'smollm3', 'olmo3', 'qwen2_moe', 'qwen3_moe'],
};
