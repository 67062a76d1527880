/**
 * llama.cpp's names for the architectures it shares with us, and the fixed settings of its graph for each (llama.cpp v0.5.0,
 * src/models/<name>.cpp and conversion/<family>.py). Names and sizes of the tensors follow from the wiring; a model type that
 * is not listed cannot be written as GGUF.
 */
import type { Activation } from './architecture';

export interface GgufArchitecture {
  name: string;
  /** Rotary pairs stand side by side there, not in halves: rows of queries and keys change places. */
  adjacentPairs?: true;
  activations: readonly Activation[];
  /** Has keys for the factors of embedding, scores, branches and logits; without, they are built in. */
  factors?: true;
  /**
   * Follows a sliding window: in the layers of a pattern, in those of even numbers and no others, or never (then its layers see
   * everything).
   */
  windows?: 'pattern' | 'even';
  /** Embedding is scaled by √hidden. */
  scalesEmbedding?: true;
  /** Number of layers at which scores are divided by √(hidden / heads) instead of √headDim. */
  hiddenScaleLayers?: number;
  softcaps?: { scores?: true; logits?: true };
  /** Branches may be parallel, by a key. */
  parallel?: true;
  /** Name of the norm ahead of the MLP; `ffn_norm` by default. */
  mlpNorm?: string;
  /** Every so-many-th layer has no positions. */
  withoutRopeEvery?: number;
  /** As many keys and values as queries. */
  sameHeads?: true;
  experts?: {
    /** Shares of the chosen sum to 1. */
    normalized: boolean;
    /** Key of their width; without, it is that of the MLP. */
    width?: true;
  };
}

const SILU = ['silu'] as const;
/** llama.cpp has one GELU for all of these, by tanh. */
const GELU = ['gelu_tanh', 'gelu_erf', 'gelu_bloom'] as const;

const gemma = { activations: ['gelu_tanh'], scalesEmbedding: true } as const;

export const GGUF_ARCHITECTURES: Readonly<Record<string, GgufArchitecture>> = {
  llama: { name: 'llama', adjacentPairs: true, activations: SILU },
  mistral: { name: 'llama', adjacentPairs: true, activations: SILU },
  qwen2: { name: 'qwen2', activations: SILU },
  qwen3: { name: 'qwen3', activations: SILU },
  phi3: { name: 'phi3', activations: SILU },
  olmo2: { name: 'olmo2', activations: SILU },
  granite: { name: 'granite', adjacentPairs: true, activations: SILU, factors: true },
  smollm3: { name: 'smollm3', adjacentPairs: true, activations: SILU, withoutRopeEvery: 4 },
  stablelm: { name: 'stablelm', activations: SILU },
  gemma: { ...gemma, name: 'gemma' },
  gemma2: {
    ...gemma,
    name: 'gemma2',
    windows: 'pattern',
    softcaps: { scores: true, logits: true },
    hiddenScaleLayers: 46,
  },
  gemma3_text: {
    ...gemma,
    name: 'gemma3',
    windows: 'pattern',
    softcaps: { logits: true },
    hiddenScaleLayers: 62,
  },
  starcoder2: { name: 'starcoder2', activations: GELU },
  arcee: { name: 'arcee', adjacentPairs: true, activations: ['relu2'] },
  exaone4: { name: 'exaone4', activations: SILU },
  hunyuan_v1_dense: { name: 'hunyuan-dense', activations: SILU },
  ernie4_5: { name: 'ernie4_5', activations: SILU },
  nemotron: { name: 'nemotron', activations: ['relu2'] },
  seed_oss: { name: 'seed_oss', activations: SILU, mlpNorm: 'post_attention_norm' },
  glm4: { name: 'glm4', activations: SILU },
  mixtral: { name: 'llama', adjacentPairs: true, activations: SILU, experts: { normalized: true } },
  qwen2_moe: { name: 'qwen2moe', activations: SILU, experts: { normalized: false, width: true } },
  qwen3_moe: { name: 'qwen3moe', activations: SILU, experts: { normalized: true, width: true } },
  olmoe: { name: 'olmoe', activations: SILU, sameHeads: true, experts: { normalized: false } },
  granitemoe: {
    name: 'granitemoe',
    adjacentPairs: true,
    activations: SILU,
    factors: true,
    experts: { normalized: true },
  },
  gpt_oss: {
    name: 'gpt-oss',
    activations: ['swiglu_clamped'],
    windows: 'even',
    mlpNorm: 'post_attention_norm',
    experts: { normalized: true, width: true },
  },
  gpt2: { name: 'gpt2', activations: GELU },
  gpt_neox: { name: 'gptneox', activations: GELU, parallel: true },
  bloom: { name: 'bloom', activations: GELU },
};
