/**
 * Wirings of Gemma (transformers: modeling_gemma.py, modeling_gemma2.py, modeling_gemma3.py). The activation is the
 * tanh GELU unless `hidden_activation` names another: Gemma 1 ignores `hidden_act`, which early files have wrong.
 */
import type { Wiring } from '../wiring';
import { llama } from './llama';

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
