/**
 * Wirings of llama and its relatives (transformers: modeling_llama.py, modeling_mistral.py, modeling_qwen2.py,
 * modeling_qwen3.py, modeling_phi3.py, modeling_olmo2.py, modeling_granite.py, modeling_smollm3.py,
 * modeling_stablelm.py). Defaults are those of the configuration classes.
 */
import type { RopeWiring, Wiring } from '../wiring';

export const rope = (theta: number): RopeWiring => ({ theta });
export const partialRope = (theta: number, share: number): RopeWiring => ({
  theta,
  fraction: { fields: ['rope_parameters.partial_rotary_factor', 'partial_rotary_factor'], orElse: share },
});

export const llama: Wiring = {
  sizes: {
    layers: { fields: ['num_hidden_layers'] },
    hidden: { fields: ['hidden_size'] },
    heads: { fields: ['num_attention_heads'] },
    keyValueHeads: { fields: ['num_key_value_heads'] },
    headDim: { fields: ['head_dim'] },
    inner: { fields: ['intermediate_size'] },
  },
  norm: { kind: 'rms', bias: false, epsilon: { fields: ['rms_norm_eps'], orElse: 1e-6 } },
  embedding: {},
  norms: { attentionIn: 'input_layernorm', mlpIn: 'post_attention_layernorm', final: 'model.norm' },
  attention: {
    projections: { query: 'self_attn.q_proj', key: 'self_attn.k_proj', value: 'self_attn.v_proj' },
    bias: { field: 'attention_bias', orElse: false },
    output: 'self_attn.o_proj',
    outputBias: { field: 'attention_bias', orElse: false },
    scale: 'head_dim',
    position: rope(10_000),
  },
  mlp: {
    gate: 'mlp.gate_proj',
    up: 'mlp.up_proj',
    down: 'mlp.down_proj',
    bias: { field: 'mlp_bias', orElse: false },
    activation: { fields: ['hidden_act'], orElse: 'silu' },
  },
  head: {},
};

export const mistral: Wiring = {
  ...llama,
  attention: {
    ...llama.attention,
    bias: false,
    outputBias: false,
    window: { size: { fields: ['sliding_window'], orElse: 4096 }, layers: 'all' },
  },
  mlp: { ...llama.mlp, bias: false },
};

const qwenWindow = {
  size: { fields: ['sliding_window'], orElse: 4096 },
  enabled: { field: 'use_sliding_window', orElse: false },
  layers: { orElse: { fromLayer: { fields: ['max_window_layers'], orElse: 28 } } },
} as const;

export const qwen2: Wiring = {
  ...mistral,
  attention: { ...llama.attention, bias: true, outputBias: false, window: qwenWindow },
};

export const qwen3: Wiring = {
  ...mistral,
  sizes: { ...llama.sizes, headDim: { fields: ['head_dim'], orElse: 128 } },
  attention: {
    ...llama.attention,
    headNorm: { query: 'self_attn.q_norm', key: 'self_attn.k_norm', over: 'head' },
    window: qwenWindow,
  },
};

/** Queries, keys and values in one projection, gate and up in another. */
export const phi3: Wiring = {
  ...mistral,
  norm: { kind: 'rms', bias: false, epsilon: { fields: ['rms_norm_eps'], orElse: 1e-5 } },
  attention: {
    ...mistral.attention,
    projections: { fused: 'self_attn.qkv_proj', order: 'blocks' },
    position: partialRope(10_000, 1),
    window: { size: { fields: ['sliding_window'] }, layers: 'all' },
  },
  mlp: {
    fusedGate: true,
    up: 'mlp.gate_up_proj',
    down: 'mlp.down_proj',
    bias: false,
    activation: { fields: ['hidden_act'], orElse: 'silu' },
  },
};

/** No norm ahead of a branch, one behind; queries and keys are normed over the whole projection. */
export const olmo2: Wiring = {
  ...llama,
  norm: { kind: 'rms', bias: false, epsilon: { fields: ['rms_norm_eps'], orElse: 1e-5 } },
  norms: {
    attentionOut: 'post_attention_layernorm',
    mlpOut: 'post_feedforward_layernorm',
    final: 'model.norm',
  },
  attention: {
    ...llama.attention,
    headNorm: { query: 'self_attn.q_norm', key: 'self_attn.k_norm', over: 'projection' },
  },
  mlp: { ...llama.mlp, bias: false },
};

/** Llama with four multipliers. */
export const granite: Wiring = {
  ...llama,
  embedding: { scale: { fields: ['embedding_multiplier'], orElse: 1 } },
  residualScale: { fields: ['residual_multiplier'], orElse: 1 },
  attention: {
    ...llama.attention,
    scale: { factor: { fields: ['attention_multiplier'], orElse: 1 } },
  },
  head: { divisor: { fields: ['logits_scaling'], orElse: 1 } },
};

/** Llama in which some layers have no positions. */
export const smollm3: Wiring = {
  ...llama,
  attention: {
    ...llama.attention,
    position: {
      theta: 2_000_000,
      skip: { list: 'no_rope_layers', interval: { fields: ['no_rope_layer_interval'], orElse: 4 } },
    },
    window: {
      size: { fields: ['sliding_window'] },
      enabled: { field: 'use_sliding_window', orElse: false },
      layers: { orElse: 'without_rope' },
    },
  },
};

/** LayerNorms, a gated MLP, and a quarter of each head rotating. */
export const stablelm: Wiring = {
  ...llama,
  norm: { kind: 'layer', bias: true, epsilon: { fields: ['layer_norm_eps'], orElse: 1e-5 } },
  attention: {
    ...llama.attention,
    bias: { field: 'use_qkv_bias', orElse: false },
    outputBias: false,
    position: partialRope(10_000, 0.25),
  },
  mlp: { ...llama.mlp, bias: false },
  fixed: [
    { field: 'qk_layernorm', value: false, otherwise: 'a norm for every head' },
    { field: 'use_parallel_residual', value: false, otherwise: 'attention and MLP side by side' },
  ],
};

// Wirings of Gemma (transformers: modeling_gemma.py, modeling_gemma2.py, modeling_gemma3.py). The activation is the
// tanh GELU unless `hidden_activation` names another: Gemma 1 ignores `hidden_act`, which early files have wrong.

export const gemma: Wiring = {
  ...llama,
  sizes: { ...llama.sizes, headDim: { fields: ['head_dim'], orElse: 256 } },
  norm: { kind: 'rms_plus_one', bias: false, epsilon: { fields: ['rms_norm_eps'], orElse: 1e-6 } },
  embedding: { scale: 'sqrt_hidden' },
  mlp: {
    ...llama.mlp,
    bias: false,
    activation: { fields: ['hidden_activation'], orElse: 'gelu_pytorch_tanh' },
  },
};

/** Norms on both sides of every branch, capped scores and logits, every other layer local. */
export const gemma2: Wiring = {
  ...gemma,
  norms: {
    attentionIn: 'input_layernorm',
    attentionOut: 'post_attention_layernorm',
    mlpIn: 'pre_feedforward_layernorm',
    mlpOut: 'post_feedforward_layernorm',
    final: 'model.norm',
  },
  attention: {
    ...gemma.attention,
    scale: { root: { fields: ['query_pre_attn_scalar'], orElse: 256 } },
    softcap: { fields: ['attn_logit_softcapping'], orElse: 50 },
    window: { size: { fields: ['sliding_window'], orElse: 4096 }, layers: { orElse: 'even' } },
  },
  head: { softcap: { fields: ['final_logit_softcapping'], orElse: 30 } },
};

/** Gemma 2 with normed heads instead of capped scores, and a rotary base of its own for local layers. */
export const gemma3: Wiring = {
  ...gemma2,
  attention: {
    ...gemma2.attention,
    headNorm: { query: 'self_attn.q_norm', key: 'self_attn.k_norm', over: 'head' },
    position: { theta: 1_000_000, local: { fields: ['rope_local_base_freq'], orElse: 10_000 } },
    softcap: { fields: ['attn_logit_softcapping'] },
    window: {
      size: { fields: ['sliding_window'], orElse: 4096 },
      layers: {
        orElse: {
          exceptEvery: { fields: ['sliding_window_pattern', '_sliding_window_pattern'], orElse: 6 },
        },
      },
    },
  },
  head: { softcap: { fields: ['final_logit_softcapping'] } },
  fixed: [
    {
      field: 'use_bidirectional_attention',
      value: false,
      otherwise: 'an encoder: tokens see those behind them',
    },
  ],
};
