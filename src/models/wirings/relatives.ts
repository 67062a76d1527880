/**
 * Wirings that differ from llama's in a few places (transformers: modeling_apertus.py, modeling_arcee.py, modeling_cohere.py,
 * modeling_cohere2.py, modeling_ernie4_5.py, modeling_exaone4.py, modeling_glm.py, modeling_glm4.py, modeling_hunyuan_v1_dense.py,
 * modeling_minicpm3.py, modeling_nemotron.py, modeling_olmo.py, modeling_olmo3.py, modeling_phi.py, modeling_seed_oss.py,
 * modeling_starcoder2.py). Defaults are those of the configuration classes.
 */
import type { LatentWiring, Wiring } from '../wiring';
import { llama, olmo2, partialRope, rope } from './llama';

const epsilon = (field: string, orElse: number) => ({ fields: [field], orElse });
const plainMlp = (up: string, down: string, activation: string) => ({
  plain: true as const,
  up,
  down,
  bias: { field: 'mlp_bias', orElse: false },
  activation: { fields: ['hidden_act'], orElse: activation },
});

/** A squared-ReLU-like activation with two learned slopes, and a norm of each head. */
export const apertus: Wiring = {
  ...llama,
  norm: { ...llama.norm, epsilon: epsilon('rms_norm_eps', 1e-5) },
  norms: { attentionIn: 'attention_layernorm', mlpIn: 'feedforward_layernorm', final: 'model.norm' },
  attention: {
    ...llama.attention,
    headNorm: { query: 'self_attn.q_norm', key: 'self_attn.k_norm', over: 'head' },
    position: rope(12_000_000),
  },
  mlp: { ...plainMlp('mlp.up_proj', 'mlp.down_proj', 'xielu'), bias: false, xielu: 'mlp.act_fn' },
};

export const arcee: Wiring = { ...llama, mlp: plainMlp('mlp.up_proj', 'mlp.down_proj', 'relu2') };

/** One LayerNorm for both branches, which stand side by side; neighbors rotate. */
export const cohere: Wiring = {
  ...llama,
  norm: { kind: 'layer', bias: false, epsilon: epsilon('layer_norm_eps', 1e-5) },
  norms: { attentionIn: 'input_layernorm', mlpIn: 'input_layernorm', final: 'model.norm' },
  parallel: true,
  attention: { ...llama.attention, position: { theta: 500_000, pairs: 'adjacent' } },
  mlp: { ...llama.mlp, bias: false },
  head: { factor: { fields: ['logit_scale'], orElse: 0.0625 } },
  fixed: [{ field: 'use_qk_norm', value: false, otherwise: 'a norm for every head' }],
};

/** Cohere whose layers either see a window and rotate, or see all and do not. */
export const cohere2: Wiring = {
  ...cohere,
  attention: {
    ...cohere.attention,
    position: { theta: 10_000, pairs: 'adjacent', windowedOnly: true },
    window: {
      size: { fields: ['sliding_window'], orElse: 4096 },
      layers: { orElse: { exceptEvery: { fields: ['sliding_window_pattern'], orElse: 4 } } },
    },
  },
};

const useBias = { field: 'use_bias', orElse: false };

export const ernie: Wiring = {
  ...llama,
  norm: { ...llama.norm, epsilon: epsilon('rms_norm_eps', 1e-5) },
  attention: {
    ...llama.attention,
    bias: useBias,
    outputBias: useBias,
    position: { theta: 500_000, pairs: 'adjacent' },
  },
  mlp: { ...llama.mlp, bias: useBias },
};

/** OLMo 2 with a norm of each head; layers that see all do not rotate where others have a window. */
export const exaone4: Wiring = {
  ...olmo2,
  attention: {
    ...olmo2.attention,
    bias: false,
    outputBias: false,
    headNorm: { query: 'self_attn.q_norm', key: 'self_attn.k_norm', over: 'head' },
    position: { theta: 10_000, windowedOnly: true },
    window: {
      size: { fields: ['sliding_window'], orElse: 4096 },
      layers: { orElse: { exceptEvery: { fields: ['sliding_window_pattern'], orElse: 4 } } },
    },
  },
};

/** Norms on both sides of every branch, half of each head rotating by neighbors. */
export const glm4: Wiring = {
  ...llama,
  norm: { ...llama.norm, epsilon: epsilon('rms_norm_eps', 1.5625e-7) },
  norms: {
    attentionIn: 'input_layernorm',
    attentionOut: 'post_self_attn_layernorm',
    mlpIn: 'post_attention_layernorm',
    mlpOut: 'post_mlp_layernorm',
    final: 'model.norm',
  },
  attention: {
    ...llama.attention,
    outputBias: false,
    position: { ...partialRope(10_000, 0.5), pairs: 'adjacent' },
  },
  mlp: {
    fusedGate: true,
    up: 'mlp.gate_up_proj',
    down: 'mlp.down_proj',
    bias: false,
    activation: { fields: ['hidden_act'], orElse: 'silu' },
  },
};

/** GLM-4 as it was first: norms ahead of the branches alone. */
export const glm: Wiring = {
  ...glm4,
  norms: llama.norms,
  attention: { ...glm4.attention, bias: { field: 'attention_bias', orElse: true } },
};

export const hunyuan: Wiring = {
  ...llama,
  norm: { ...llama.norm, epsilon: epsilon('rms_norm_eps', 1e-5) },
  attention: {
    ...llama.attention,
    headNorm: {
      query: 'self_attn.query_layernorm',
      key: 'self_attn.key_layernorm',
      over: 'head',
      afterRope: true,
    },
  },
  mlp: { ...llama.mlp, bias: false },
};

/** Names and fields of latent attention, as DeepSeek V2 has them. */
export const latent: LatentWiring = {
  queryRank: { fields: ['q_lora_rank'] },
  keyValueRank: { fields: ['kv_lora_rank'] },
  plain: { fields: ['qk_nope_head_dim'] },
  rotated: { fields: ['qk_rope_head_dim'] },
  value: { fields: ['v_head_dim'] },
  modules: {
    query: 'self_attn.q_proj',
    queryNarrow: 'self_attn.q_a_proj',
    queryNorm: 'self_attn.q_a_layernorm',
    queryWide: 'self_attn.q_b_proj',
    keyValueNarrow: 'self_attn.kv_a_proj_with_mqa',
    keyValueNorm: 'self_attn.kv_a_layernorm',
    keyValueWide: 'self_attn.kv_b_proj',
  },
};

/** Latent attention, and three multipliers. */
export const minicpm3: Wiring = {
  ...llama,
  norm: { ...llama.norm, epsilon: epsilon('rms_norm_eps', 1e-5) },
  embedding: { scale: { fields: ['scale_emb'], orElse: 12 } },
  residualScale: { depth: { fields: ['scale_depth'], orElse: 1.4 } },
  attention: {
    ...llama.attention,
    latent,
    position: { theta: 10_000, dims: latent.rotated },
  },
  head: { widthBase: { fields: ['dim_model_base'], orElse: 256 } },
};

/** LayerNorms of 1 + w, squared ReLU, half of each head rotating. */
export const nemotron: Wiring = {
  ...llama,
  norm: { kind: 'layer_plus_one', bias: true, epsilon: epsilon('norm_eps', 1e-5) },
  attention: { ...llama.attention, position: partialRope(10_000, 0.5) },
  mlp: plainMlp('mlp.up_proj', 'mlp.down_proj', 'relu2'),
};

/** LayerNorms without weights. */
export const olmo: Wiring = {
  ...llama,
  norm: { kind: 'layer', bias: false, weightless: true, epsilon: { fields: [], orElse: 1e-5 } },
  mlp: { ...llama.mlp, bias: false },
  fixed: [{ field: 'clip_qkv', value: null, otherwise: 'clipped queries, keys and values' }],
};

/** OLMo 2 with windows; only layers that see all have scaled positions. */
export const olmo3: Wiring = {
  ...olmo2,
  attention: {
    ...olmo2.attention,
    position: {
      theta: 500_000,
      local: { fields: ['rope_parameters.rope_theta', 'rope_theta'], orElse: 500_000 },
    },
    window: {
      size: { fields: ['sliding_window'], orElse: 4096 },
      layers: { orElse: { exceptEvery: { fields: [], orElse: 4 } } },
    },
  },
};

/** One LayerNorm for both branches, biases everywhere. */
export const phi: Wiring = {
  ...llama,
  norm: { kind: 'layer', bias: true, epsilon: epsilon('layer_norm_eps', 1e-5) },
  norms: { attentionIn: 'input_layernorm', mlpIn: 'input_layernorm', final: 'model.final_layernorm' },
  parallel: true,
  attention: {
    ...llama.attention,
    bias: true,
    output: 'self_attn.dense',
    outputBias: true,
    position: partialRope(10_000, 0.5),
  },
  mlp: { ...plainMlp('mlp.fc1', 'mlp.fc2', 'gelu_new'), bias: true },
  head: { bias: 'lm_head.bias' },
  fixed: [{ field: 'qk_layernorm', value: false, otherwise: 'a norm for every head' }],
};

export const seedOss: Wiring = {
  ...llama,
  attention: {
    ...llama.attention,
    bias: { field: 'attention_bias', orElse: true },
    outputBias: { field: 'attention_out_bias', orElse: false },
  },
};

/** LayerNorms, a plain MLP, biases. */
export const starcoder2: Wiring = {
  ...llama,
  norm: { kind: 'layer', bias: true, epsilon: epsilon('norm_epsilon', 1e-5) },
  attention: {
    ...llama.attention,
    bias: { field: 'use_bias', orElse: true },
    outputBias: { field: 'use_bias', orElse: true },
    window: { size: { fields: ['sliding_window'] }, layers: 'all' },
  },
  mlp: {
    ...plainMlp('mlp.c_fc', 'mlp.c_proj', 'gelu_pytorch_tanh'),
    bias: { field: 'use_bias', orElse: true },
  },
};
