/**
 * Wirings of the GPT-2 line (transformers: modeling_gpt2.py, modeling_gpt_neox.py, modeling_bloom.py,
 * modeling_opt.py). Defaults are those of the configuration classes.
 */
import type { Wiring } from '../wiring';

export const gpt2: Wiring = {
  sizes: {
    layers: { fields: ['n_layer', 'num_hidden_layers'] },
    hidden: { fields: ['n_embd', 'hidden_size'] },
    heads: { fields: ['n_head', 'num_attention_heads'] },
    inner: { fields: ['n_inner'] },
  },
  norm: { kind: 'layer', bias: true, epsilon: { fields: ['layer_norm_epsilon'], orElse: 1e-5 } },
  embedding: {
    positions: {
      tensor: 'transformer.wpe.weight',
      offset: 0,
      count: { fields: ['n_positions', 'max_position_embeddings'], orElse: 1024 },
    },
  },
  norms: { attentionIn: 'ln_1', mlpIn: 'ln_2', final: 'transformer.ln_f' },
  attention: {
    projections: { fused: 'attn.c_attn', order: 'blocks' },
    bias: true,
    output: 'attn.c_proj',
    outputBias: true,
    scale: 'head_dim',
    scaleSwitch: { field: 'scale_attn_weights', orElse: true },
    inverseLayerScale: { field: 'scale_attn_by_inverse_layer_idx', orElse: false },
    position: 'none',
  },
  mlp: {
    plain: true,
    up: 'mlp.c_fc',
    down: 'mlp.c_proj',
    bias: true,
    activation: { fields: ['activation_function'], orElse: 'gelu_new' },
  },
  head: {},
  fixed: [{ field: 'add_cross_attention', value: false, otherwise: 'attention to an encoder' }],
};

export const gptNeox: Wiring = {
  sizes: {
    layers: { fields: ['num_hidden_layers'] },
    hidden: { fields: ['hidden_size'] },
    heads: { fields: ['num_attention_heads'] },
    inner: { fields: ['intermediate_size'] },
  },
  norm: { kind: 'layer', bias: true, epsilon: { fields: ['layer_norm_eps'], orElse: 1e-5 } },
  embedding: {},
  norms: {
    attentionIn: 'input_layernorm',
    mlpIn: 'post_attention_layernorm',
    final: 'gpt_neox.final_layer_norm',
  },
  parallel: { field: 'use_parallel_residual', orElse: true },
  attention: {
    projections: { fused: 'attention.query_key_value', order: 'per_head' },
    bias: { field: 'attention_bias', orElse: true },
    output: 'attention.dense',
    outputBias: { field: 'attention_bias', orElse: true },
    scale: 'head_dim',
    position: {
      theta: 10_000,
      fraction: { fields: ['rope_parameters.partial_rotary_factor', 'rotary_pct'], orElse: 0.25 },
    },
  },
  mlp: {
    plain: true,
    up: 'mlp.dense_h_to_4h',
    down: 'mlp.dense_4h_to_h',
    bias: true,
    activation: { fields: ['hidden_act'], orElse: 'gelu' },
  },
  head: {},
};

export const bloom: Wiring = {
  sizes: {
    layers: { fields: ['n_layer', 'num_hidden_layers'] },
    hidden: { fields: ['hidden_size', 'n_embed'] },
    heads: { fields: ['n_head', 'num_attention_heads'] },
    inner: 'four_times_hidden',
  },
  norm: { kind: 'layer', bias: true, epsilon: { fields: ['layer_norm_epsilon'], orElse: 1e-5 } },
  embedding: { norm: 'transformer.word_embeddings_layernorm' },
  norms: { attentionIn: 'input_layernorm', mlpIn: 'post_attention_layernorm', final: 'transformer.ln_f' },
  attention: {
    projections: { fused: 'self_attention.query_key_value', order: 'per_head' },
    bias: true,
    output: 'self_attention.dense',
    outputBias: true,
    scale: 'head_dim',
    position: 'alibi',
  },
  mlp: {
    plain: true,
    up: 'mlp.dense_h_to_4h',
    down: 'mlp.dense_4h_to_h',
    bias: true,
    activation: { fields: [], orElse: 'gelu_bloom' },
  },
  head: {},
  fixed: [
    {
      field: 'apply_residual_connection_post_layernorm',
      value: false,
      otherwise: 'a stream that continues from the norms',
    },
  ],
};

export const opt: Wiring = {
  sizes: {
    layers: { fields: ['num_hidden_layers'] },
    hidden: { fields: ['hidden_size'] },
    heads: { fields: ['num_attention_heads'] },
    inner: { fields: ['ffn_dim'] },
  },
  norm: { kind: 'layer', bias: true, epsilon: { fields: [], orElse: 1e-5 } },
  embedding: {
    positions: {
      tensor: 'model.decoder.embed_positions.weight',
      offset: 2,
      count: { fields: ['max_position_embeddings'], orElse: 2048 },
    },
    projection: {
      into: 'model.decoder.project_in',
      outOf: 'model.decoder.project_out',
      width: { fields: ['word_embed_proj_dim'] },
    },
  },
  norms: {
    attentionIn: 'self_attn_layer_norm',
    mlpIn: 'final_layer_norm',
    final: 'model.decoder.final_layer_norm',
    before: { field: 'do_layer_norm_before', orElse: true },
    finalRemoved: { field: '_remove_final_layer_norm', orElse: false },
  },
  attention: {
    projections: { query: 'self_attn.q_proj', key: 'self_attn.k_proj', value: 'self_attn.v_proj' },
    bias: { field: 'enable_bias', orElse: true },
    output: 'self_attn.out_proj',
    outputBias: { field: 'enable_bias', orElse: true },
    scale: 'head_dim',
    position: 'none',
  },
  mlp: {
    plain: true,
    up: 'fc1',
    down: 'fc2',
    bias: { field: 'enable_bias', orElse: true },
    activation: { fields: ['activation_function'], orElse: 'relu' },
  },
  head: {},
  fixed: [{ field: 'layer_norm_elementwise_affine', value: true, otherwise: 'norms without weights' }],
};
