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

/** Attention and MLP side by side behind one LayerNorm; part of each head rotates by neighbors. */
export const gptj: Wiring = {
  ...gpt2,
  embedding: {},
  norms: { attentionIn: 'ln_1', mlpIn: 'ln_1', final: 'transformer.ln_f' },
  parallel: true,
  attention: {
    projections: { query: 'attn.q_proj', key: 'attn.k_proj', value: 'attn.v_proj' },
    bias: false,
    output: 'attn.out_proj',
    outputBias: false,
    scale: 'head_dim',
    position: { theta: 10_000, pairs: 'adjacent', dims: { fields: ['rotary_dim'], orElse: 64 } },
  },
  mlp: {
    plain: true,
    up: 'mlp.fc_in',
    down: 'mlp.fc_out',
    bias: true,
    activation: { fields: ['activation_function'], orElse: 'gelu_new' },
  },
  head: { bias: 'lm_head.bias' },
};

/** GPT-J with one projection in four parts. */
export const codegen: Wiring = {
  ...gptj,
  attention: { ...gptj.attention, projections: { fused: 'attn.qkv_proj', order: 'quarters' } },
};

/** Scores are not scaled; every other layer sees a window. */
export const gptNeo: Wiring = {
  ...gpt2,
  sizes: {
    layers: { fields: ['num_layers', 'num_hidden_layers'] },
    hidden: { fields: ['hidden_size'] },
    heads: { fields: ['num_heads', 'num_attention_heads'] },
    inner: { fields: ['intermediate_size'] },
  },
  embedding: {
    positions: {
      tensor: 'transformer.wpe.weight',
      offset: 0,
      count: { fields: ['max_position_embeddings'], orElse: 2048 },
    },
  },
  attention: {
    projections: {
      query: 'attn.attention.q_proj',
      key: 'attn.attention.k_proj',
      value: 'attn.attention.v_proj',
    },
    bias: false,
    output: 'attn.attention.out_proj',
    outputBias: true,
    scale: 1,
    position: 'none',
    window: {
      size: { fields: ['window_size'], orElse: 256 },
      list: 'attention_layers',
      layers: { orElse: 'odd' },
    },
  },
};

const oneKey = { fields: [], orElse: 1 } as const;

/** GPT-2 whose heads share one key. */
export const gptBigcode: Wiring = {
  ...gpt2,
  attention: {
    ...gpt2.attention,
    projections: { fused: 'attn.c_attn', order: 'per_head' },
    inverseLayerScale: false,
  },
  mlp: { ...gpt2.mlp, activation: { fields: ['activation_function'], orElse: 'gelu_pytorch_tanh' } },
  variants: [
    {
      when: { field: 'multi_query', orElse: true },
      change: {
        sizes: { ...gpt2.sizes, keyValueHeads: oneKey },
        attention: {
          ...gpt2.attention,
          projections: { fused: 'attn.c_attn', order: 'blocks' },
          inverseLayerScale: false,
        },
      },
    },
  ],
};

const falconSizes: Wiring['sizes'] = {
  layers: { fields: ['num_hidden_layers', 'n_layer'] },
  hidden: { fields: ['hidden_size'] },
  heads: { fields: ['num_attention_heads', 'n_head'] },
  inner: { fields: ['ffn_hidden_size'] },
};
const bias = { field: 'bias', orElse: false };
const falconAttention: Wiring['attention'] = {
  projections: { fused: 'self_attention.query_key_value', order: 'per_head' },
  bias,
  output: 'self_attention.dense',
  outputBias: bias,
  scale: 'head_dim',
  position: { theta: 10_000 },
};

/** One LayerNorm for both branches and one key for all heads; the later layout has two norms and a key for each group of heads. */
export const falcon: Wiring = {
  sizes: falconSizes,
  norm: { kind: 'layer', bias: true, epsilon: { fields: ['layer_norm_epsilon'], orElse: 1e-5 } },
  embedding: {},
  norms: { attentionIn: 'input_layernorm', mlpIn: 'input_layernorm', final: 'transformer.ln_f' },
  parallel: true,
  attention: falconAttention,
  mlp: {
    plain: true,
    up: 'mlp.dense_h_to_4h',
    down: 'mlp.dense_4h_to_h',
    bias,
    activation: { fields: ['activation'], orElse: 'gelu' },
  },
  head: {},
  fixed: [
    { field: 'alibi', value: false, otherwise: 'positions by ALiBi in bfloat16' },
    { field: 'parallel_attn', value: true, otherwise: 'attention and MLP one after the other' },
    { field: 'num_ln_in_parallel_attn', value: null, otherwise: 'another number of norms' },
  ],
  variants: [
    {
      when: { field: 'multi_query', orElse: true },
      change: {
        sizes: { ...falconSizes, keyValueHeads: oneKey },
        attention: {
          ...falconAttention,
          projections: { fused: 'self_attention.query_key_value', order: 'blocks' },
        },
      },
    },
    {
      when: { field: 'new_decoder_architecture', orElse: false },
      change: {
        sizes: { ...falconSizes, keyValueHeads: { fields: ['num_kv_heads', 'n_head_kv'] } },
        norms: { attentionIn: 'ln_attn', mlpIn: 'ln_mlp', final: 'transformer.ln_f' },
        attention: {
          ...falconAttention,
          projections: { fused: 'self_attention.query_key_value', order: 'per_group' },
        },
      },
    },
  ],
};

/** ALiBi, LayerNorms without biases, no biases at all. */
export const mpt: Wiring = {
  sizes: {
    layers: { fields: ['n_layers'] },
    hidden: { fields: ['d_model'] },
    heads: { fields: ['n_heads'] },
    inner: 'four_times_hidden',
  },
  norm: { kind: 'layer', bias: false, epsilon: { fields: ['layer_norm_epsilon'], orElse: 1e-5 } },
  embedding: {},
  norms: { attentionIn: 'norm_1', mlpIn: 'norm_2', final: 'transformer.norm_f' },
  attention: {
    projections: { fused: 'attn.Wqkv', order: 'blocks' },
    bias: false,
    output: 'attn.out_proj',
    outputBias: false,
    scale: 'head_dim',
    position: 'alibi',
  },
  mlp: {
    plain: true,
    up: 'ffn.up_proj',
    down: 'ffn.down_proj',
    bias: false,
    activation: { fields: [], orElse: 'gelu' },
  },
  head: {},
  fixed: [
    { field: 'attn_config.alibi', value: true, otherwise: 'learned positions' },
    { field: 'attn_config.clip_qkv', value: null, otherwise: 'clipped queries, keys and values' },
    { field: 'attn_config.qk_ln', value: false, otherwise: 'norms of queries and keys' },
    { field: 'attn_config.softmax_scale', value: null, otherwise: 'a scale of its own' },
    { field: 'no_bias', value: true, otherwise: 'biases' },
  ],
};
