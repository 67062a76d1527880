/**
 * Wirings of llama and its relatives (transformers: modeling_llama.py, modeling_mistral.py, modeling_qwen2.py,
 * modeling_qwen3.py, modeling_phi3.py, modeling_olmo2.py, modeling_granite.py, modeling_smollm3.py,
 * modeling_stablelm.py). Defaults are those of the configuration classes.
 */
import { at, flag, or } from '../config-reader';
import {
  apart,
  fusedMlp,
  gatedMlp,
  HEAD_NORM,
  type RopeWiring,
  vary,
  type Wiring,
  windowEvery,
  windowOf,
} from '../wiring';

export const rope = (theta: number): RopeWiring => ({ theta });
export const partialRope = (theta: number, share: number): RopeWiring => ({
  theta,
  fraction: or(share, 'rope_parameters.partial_rotary_factor', 'partial_rotary_factor'),
});

export const llama: Wiring = {
  sizes: {
    layers: at('num_hidden_layers'),
    hidden: at('hidden_size'),
    heads: at('num_attention_heads'),
    keyValueHeads: at('num_key_value_heads'),
    headDim: at('head_dim'),
    inner: at('intermediate_size'),
  },
  norm: { kind: 'rms', bias: false, epsilon: or(1e-6, 'rms_norm_eps') },
  embedding: {},
  norms: { attentionIn: 'input_layernorm', mlpIn: 'post_attention_layernorm', final: 'model.norm' },
  attention: {
    projections: apart('self_attn.q_proj', 'self_attn.k_proj', 'self_attn.v_proj'),
    bias: flag('attention_bias', false),
    output: 'self_attn.o_proj',
    outputBias: flag('attention_bias', false),
    scale: 'head_dim',
    position: rope(10_000),
  },
  mlp: gatedMlp(
    ['mlp.gate_proj', 'mlp.up_proj', 'mlp.down_proj'],
    flag('mlp_bias', false),
    or('silu', 'hidden_act'),
  ),
  head: {},
};

export const mistral: Wiring = vary(llama, {
  attention: {
    bias: false,
    outputBias: false,
    window: windowOf(or(4096, 'sliding_window')),
  },
  mlp: { ...llama.mlp, bias: false },
});

const qwenWindow = {
  size: or(4096, 'sliding_window'),
  enabled: flag('use_sliding_window', false),
  layers: { orElse: { fromLayer: or(28, 'max_window_layers') } },
} as const;

export const qwen2: Wiring = {
  ...mistral,
  attention: { ...llama.attention, bias: true, outputBias: false, window: qwenWindow },
};

export const qwen3: Wiring = {
  ...mistral,
  sizes: { ...llama.sizes, headDim: or(128, 'head_dim') },
  attention: {
    ...llama.attention,
    headNorm: HEAD_NORM,
    window: qwenWindow,
  },
};

/** Queries, keys and values in one projection, gate and up in another. */
export const phi3: Wiring = vary(mistral, {
  norm: { kind: 'rms', bias: false, epsilon: or(1e-5, 'rms_norm_eps') },
  attention: {
    projections: { fused: 'self_attn.qkv_proj', order: 'blocks' },
    position: partialRope(10_000, 1),
    window: windowOf(at('sliding_window')),
  },
  mlp: fusedMlp(['mlp.gate_up_proj', 'mlp.down_proj'], false, or('silu', 'hidden_act')),
});

/** No norm ahead of a branch, one behind; queries and keys are normed over the whole projection. */
export const olmo2: Wiring = vary(llama, {
  norm: { kind: 'rms', bias: false, epsilon: or(1e-5, 'rms_norm_eps') },
  norms: {
    attentionOut: 'post_attention_layernorm',
    mlpOut: 'post_feedforward_layernorm',
    final: 'model.norm',
  },
  attention: {
    headNorm: { query: 'self_attn.q_norm', key: 'self_attn.k_norm', over: 'projection' },
  },
  mlp: { ...llama.mlp, bias: false },
});

/** Llama with four multipliers. */
export const granite: Wiring = vary(llama, {
  embedding: { scale: or(1, 'embedding_multiplier') },
  residualScale: or(1, 'residual_multiplier'),
  attention: {
    scale: { factor: or(1, 'attention_multiplier') },
  },
  head: { divisor: or(1, 'logits_scaling') },
});

/** Llama in which some layers have no positions. */
export const smollm3: Wiring = vary(llama, {
  attention: {
    position: {
      theta: 2_000_000,
      skip: { list: 'no_rope_layers', interval: or(4, 'no_rope_layer_interval') },
    },
    window: {
      size: at('sliding_window'),
      enabled: flag('use_sliding_window', false),
      layers: { orElse: 'without_rope' },
    },
  },
});

/** LayerNorms, a gated MLP, and a quarter of each head rotating. */
export const stablelm: Wiring = vary(llama, {
  norm: { kind: 'layer', bias: true, epsilon: or(1e-5, 'layer_norm_eps') },
  attention: {
    bias: flag('use_qkv_bias', false),
    outputBias: false,
    position: partialRope(10_000, 0.25),
  },
  mlp: { ...llama.mlp, bias: false },
  fixed: [
    { field: 'qk_layernorm', value: false, otherwise: 'a norm for every head' },
    { field: 'use_parallel_residual', value: false, otherwise: 'attention and MLP side by side' },
  ],
});

// Wirings of Gemma (transformers: modeling_gemma.py, modeling_gemma2.py, modeling_gemma3.py). The activation is the
// tanh GELU unless `hidden_activation` names another: Gemma 1 ignores `hidden_act`, which early files have wrong.

export const gemma: Wiring = {
  ...llama,
  sizes: { ...llama.sizes, headDim: or(256, 'head_dim') },
  norm: { kind: 'rms_plus_one', bias: false, epsilon: or(1e-6, 'rms_norm_eps') },
  embedding: { scale: 'sqrt_hidden' },
  mlp: {
    ...llama.mlp,
    bias: false,
    activation: or('gelu_pytorch_tanh', 'hidden_activation'),
  },
};

/** Norms on both sides of every branch, capped scores and logits, every other layer local. */
export const gemma2: Wiring = vary(gemma, {
  norms: {
    attentionIn: 'input_layernorm',
    attentionOut: 'post_attention_layernorm',
    mlpIn: 'pre_feedforward_layernorm',
    mlpOut: 'post_feedforward_layernorm',
    final: 'model.norm',
  },
  attention: {
    scale: { root: or(256, 'query_pre_attn_scalar') },
    softcap: or(50, 'attn_logit_softcapping'),
    window: { size: or(4096, 'sliding_window'), layers: { orElse: 'even' } },
  },
  head: { softcap: or(30, 'final_logit_softcapping') },
});

/** Gemma 2 with normed heads instead of capped scores, and a rotary base of its own for local layers. */
export const gemma3: Wiring = vary(gemma2, {
  attention: {
    headNorm: HEAD_NORM,
    position: { theta: 1_000_000, local: or(10_000, 'rope_local_base_freq') },
    softcap: at('attn_logit_softcapping'),
    window: windowEvery(
      or(4096, 'sliding_window'),
      or(6, 'sliding_window_pattern', '_sliding_window_pattern'),
    ),
  },
  head: { softcap: at('final_logit_softcapping') },
  fixed: [
    {
      field: 'use_bidirectional_attention',
      value: false,
      otherwise: 'an encoder: tokens see those behind them',
    },
  ],
});
