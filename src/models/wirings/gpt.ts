/**
 * Wirings of the GPT-2 line (transformers: modeling_gpt2.py, modeling_gpt_neox.py, modeling_bloom.py,
 * modeling_opt.py). Defaults are those of the configuration classes.
 */
import { at, flag, type NumberField, or } from '../config-reader';
import { apart, attentionOf, plainMlp, sizesOf, vary, type Wiring } from '../wiring';

/** A table of `count` learned positions. */
const positionsIn = (count: NumberField) => ({
  positions: { tensor: 'transformer.wpe.weight', offset: 0, count },
});

export const gpt2: Wiring = {
  sizes: sizesOf(
    ['n_layer', 'num_hidden_layers'],
    ['n_embd', 'hidden_size'],
    ['n_head', 'num_attention_heads'],
    'n_inner',
  ),
  norm: { kind: 'layer', bias: true, epsilon: or(1e-5, 'layer_norm_epsilon') },
  embedding: positionsIn(or(1024, 'n_positions', 'max_position_embeddings')),
  norms: { attentionIn: 'ln_1', mlpIn: 'ln_2', final: 'transformer.ln_f' },
  attention: {
    ...attentionOf({ fused: 'attn.c_attn', order: 'blocks' }, 'attn.c_proj', true, 'none'),
    scaleSwitch: flag('scale_attn_weights', true),
    inverseLayerScale: flag('scale_attn_by_inverse_layer_idx', false),
  },
  mlp: plainMlp(['mlp.c_fc', 'mlp.c_proj'], true, or('gelu_new', 'activation_function')),
  head: {},
  fixed: [{ field: 'add_cross_attention', value: false, otherwise: 'attention to an encoder' }],
};

export const gptNeox: Wiring = {
  sizes: sizesOf('num_hidden_layers', 'hidden_size', 'num_attention_heads', 'intermediate_size'),
  norm: { kind: 'layer', bias: true, epsilon: or(1e-5, 'layer_norm_eps') },
  embedding: {},
  norms: {
    attentionIn: 'input_layernorm',
    mlpIn: 'post_attention_layernorm',
    final: 'gpt_neox.final_layer_norm',
  },
  parallel: flag('use_parallel_residual', true),
  attention: attentionOf(
    { fused: 'attention.query_key_value', order: 'per_head' },
    'attention.dense',
    flag('attention_bias', true),
    {
      theta: 10_000,
      fraction: or(0.25, 'rope_parameters.partial_rotary_factor', 'rotary_pct'),
    },
  ),
  mlp: plainMlp(['mlp.dense_h_to_4h', 'mlp.dense_4h_to_h'], true, or('gelu', 'hidden_act')),
  head: {},
};

export const bloom: Wiring = {
  sizes: sizesOf(
    ['n_layer', 'num_hidden_layers'],
    ['hidden_size', 'n_embed'],
    ['n_head', 'num_attention_heads'],
  ),
  norm: { kind: 'layer', bias: true, epsilon: or(1e-5, 'layer_norm_epsilon') },
  embedding: { norm: 'transformer.word_embeddings_layernorm' },
  norms: { attentionIn: 'input_layernorm', mlpIn: 'post_attention_layernorm', final: 'transformer.ln_f' },
  attention: attentionOf(
    { fused: 'self_attention.query_key_value', order: 'per_head' },
    'self_attention.dense',
    true,
    'alibi',
  ),
  mlp: plainMlp(['mlp.dense_h_to_4h', 'mlp.dense_4h_to_h'], true, or('gelu_bloom')),
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
  sizes: sizesOf('num_hidden_layers', 'hidden_size', 'num_attention_heads', 'ffn_dim'),
  norm: { kind: 'layer', bias: true, epsilon: or(1e-5) },
  embedding: {
    positions: {
      tensor: 'model.decoder.embed_positions.weight',
      offset: 2,
      count: or(2048, 'max_position_embeddings'),
    },
    projection: {
      into: 'model.decoder.project_in',
      outOf: 'model.decoder.project_out',
      width: at('word_embed_proj_dim'),
    },
  },
  norms: {
    attentionIn: 'self_attn_layer_norm',
    mlpIn: 'final_layer_norm',
    final: 'model.decoder.final_layer_norm',
    before: flag('do_layer_norm_before', true),
    finalRemoved: flag('_remove_final_layer_norm', false),
  },
  attention: attentionOf(
    apart('self_attn.q_proj', 'self_attn.k_proj', 'self_attn.v_proj'),
    'self_attn.out_proj',
    flag('enable_bias', true),
    'none',
  ),
  mlp: plainMlp(['fc1', 'fc2'], flag('enable_bias', true), or('relu', 'activation_function')),
  head: {},
  fixed: [{ field: 'layer_norm_elementwise_affine', value: true, otherwise: 'norms without weights' }],
};

/** Attention and MLP side by side behind one LayerNorm; part of each head rotates by neighbors. */
export const gptj: Wiring = {
  ...gpt2,
  embedding: {},
  norms: { attentionIn: 'ln_1', mlpIn: 'ln_1', final: 'transformer.ln_f' },
  parallel: true,
  attention: attentionOf(apart('attn.q_proj', 'attn.k_proj', 'attn.v_proj'), 'attn.out_proj', false, {
    theta: 10_000,
    pairs: 'adjacent',
    dims: or(64, 'rotary_dim'),
  }),
  mlp: plainMlp(['mlp.fc_in', 'mlp.fc_out'], true, or('gelu_new', 'activation_function')),
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
  sizes: sizesOf(
    ['num_layers', 'num_hidden_layers'],
    'hidden_size',
    ['num_heads', 'num_attention_heads'],
    'intermediate_size',
  ),
  embedding: positionsIn(or(2048, 'max_position_embeddings')),
  attention: {
    projections: apart('attn.attention.q_proj', 'attn.attention.k_proj', 'attn.attention.v_proj'),
    bias: false,
    output: 'attn.attention.out_proj',
    outputBias: true,
    scale: 1,
    position: 'none',
    window: {
      size: or(256, 'window_size'),
      list: 'attention_layers',
      layers: { orElse: 'odd' },
    },
  },
};

const oneKey = or(1);

/** GPT-2 whose heads share one key. */
export const gptBigcode: Wiring = vary(gpt2, {
  attention: {
    projections: { fused: 'attn.c_attn', order: 'per_head' },
    inverseLayerScale: false,
  },
  mlp: { ...gpt2.mlp, activation: or('gelu_pytorch_tanh', 'activation_function') },
  variants: [
    {
      when: flag('multi_query', true),
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
});

const falconSizes = sizesOf(
  ['num_hidden_layers', 'n_layer'],
  'hidden_size',
  ['num_attention_heads', 'n_head'],
  'ffn_hidden_size',
);
const bias = flag('bias', false);
const falconAttention: Wiring['attention'] = attentionOf(
  { fused: 'self_attention.query_key_value', order: 'per_head' },
  'self_attention.dense',
  bias,
  { theta: 10_000 },
);

/** One LayerNorm for both branches and one key for all heads; the later layout has two norms and a key for each group of heads. */
export const falcon: Wiring = {
  sizes: falconSizes,
  norm: { kind: 'layer', bias: true, epsilon: or(1e-5, 'layer_norm_epsilon') },
  embedding: {},
  norms: { attentionIn: 'input_layernorm', mlpIn: 'input_layernorm', final: 'transformer.ln_f' },
  parallel: true,
  attention: falconAttention,
  mlp: plainMlp(['mlp.dense_h_to_4h', 'mlp.dense_4h_to_h'], bias, or('gelu', 'activation')),
  head: {},
  fixed: [
    { field: 'alibi', value: false, otherwise: 'positions by ALiBi in bfloat16' },
    { field: 'parallel_attn', value: true, otherwise: 'attention and MLP one after the other' },
    { field: 'num_ln_in_parallel_attn', value: null, otherwise: 'another number of norms' },
  ],
  variants: [
    {
      when: flag('multi_query', true),
      change: {
        sizes: { ...falconSizes, keyValueHeads: oneKey },
        attention: {
          ...falconAttention,
          projections: { fused: 'self_attention.query_key_value', order: 'blocks' },
        },
      },
    },
    {
      when: flag('new_decoder_architecture', false),
      change: {
        sizes: { ...falconSizes, keyValueHeads: at('num_kv_heads', 'n_head_kv') },
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
  sizes: sizesOf('n_layers', 'd_model', 'n_heads'),
  norm: { kind: 'layer', bias: false, epsilon: or(1e-5, 'layer_norm_epsilon') },
  embedding: {},
  norms: { attentionIn: 'norm_1', mlpIn: 'norm_2', final: 'transformer.norm_f' },
  attention: attentionOf({ fused: 'attn.Wqkv', order: 'blocks' }, 'attn.out_proj', false, 'alibi'),
  mlp: plainMlp(['ffn.up_proj', 'ffn.down_proj'], false, or('gelu')),
  head: {},
  fixed: [
    { field: 'attn_config.alibi', value: true, otherwise: 'learned positions' },
    { field: 'attn_config.clip_qkv', value: null, otherwise: 'clipped queries, keys and values' },
    { field: 'attn_config.qk_ln', value: false, otherwise: 'norms of queries and keys' },
    { field: 'attn_config.softmax_scale', value: null, otherwise: 'a scale of its own' },
    { field: 'no_bias', value: true, otherwise: 'biases' },
  ],
};
