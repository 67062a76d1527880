/**
 * Wirings that differ from llama's in a few places (transformers: modeling_apertus.py, modeling_arcee.py, modeling_cohere.py,
 * modeling_cohere2.py, modeling_ernie4_5.py, modeling_exaone4.py, modeling_glm.py, modeling_glm4.py, modeling_hunyuan_v1_dense.py,
 * modeling_minicpm3.py, modeling_nemotron.py, modeling_olmo.py, modeling_olmo3.py, modeling_phi.py, modeling_seed_oss.py,
 * modeling_starcoder2.py). Defaults are those of the configuration classes.
 */
import { at, flag, or } from '../config-reader';
import {
  fusedMlp,
  HEAD_NORM,
  type LatentWiring,
  plainMlp,
  vary,
  type Wiring,
  windowEvery,
  windowOf,
} from '../wiring';
import { llama, olmo2, partialRope, rope } from './llama';

/** A squared-ReLU-like activation with two learned slopes, and a norm of each head. */
export const apertus: Wiring = vary(llama, {
  norm: { ...llama.norm, epsilon: or(1e-5, 'rms_norm_eps') },
  norms: { attentionIn: 'attention_layernorm', mlpIn: 'feedforward_layernorm', final: 'model.norm' },
  attention: {
    headNorm: HEAD_NORM,
    position: rope(12_000_000),
  },
  mlp: {
    ...plainMlp(['mlp.up_proj', 'mlp.down_proj'], flag('mlp_bias', false), or('xielu', 'hidden_act')),
    bias: false,
    xielu: 'mlp.act_fn',
  },
});

export const arcee: Wiring = {
  ...llama,
  mlp: plainMlp(['mlp.up_proj', 'mlp.down_proj'], flag('mlp_bias', false), or('relu2', 'hidden_act')),
};

/** One LayerNorm for both branches, which stand side by side; neighbors rotate. */
export const cohere: Wiring = {
  ...llama,
  norm: { kind: 'layer', bias: false, epsilon: or(1e-5, 'layer_norm_eps') },
  norms: { attentionIn: 'input_layernorm', mlpIn: 'input_layernorm', final: 'model.norm' },
  parallel: true,
  attention: { ...llama.attention, position: { theta: 500_000, pairs: 'adjacent' } },
  mlp: { ...llama.mlp, bias: false },
  head: { factor: or(0.0625, 'logit_scale') },
  fixed: [{ field: 'use_qk_norm', value: false, otherwise: 'a norm for every head' }],
};

/** Cohere whose layers either see a window and rotate, or see all and do not. */
export const cohere2: Wiring = vary(cohere, {
  attention: {
    position: { theta: 10_000, pairs: 'adjacent', windowedOnly: true },
    window: windowEvery(or(4096, 'sliding_window'), or(4, 'sliding_window_pattern')),
  },
});

const useBias = flag('use_bias', false);

export const ernie: Wiring = vary(llama, {
  norm: { ...llama.norm, epsilon: or(1e-5, 'rms_norm_eps') },
  attention: {
    bias: useBias,
    outputBias: useBias,
    position: { theta: 500_000, pairs: 'adjacent' },
  },
  mlp: { ...llama.mlp, bias: useBias },
});

/** OLMo 2 with a norm of each head; layers that see all do not rotate where others have a window. */
export const exaone4: Wiring = vary(olmo2, {
  attention: {
    bias: false,
    outputBias: false,
    headNorm: HEAD_NORM,
    position: { theta: 10_000, windowedOnly: true },
    window: windowEvery(or(4096, 'sliding_window'), or(4, 'sliding_window_pattern')),
  },
});

/** Norms on both sides of every branch, half of each head rotating by neighbors. */
export const glm4: Wiring = vary(llama, {
  norm: { ...llama.norm, epsilon: or(1.5625e-7, 'rms_norm_eps') },
  norms: {
    attentionIn: 'input_layernorm',
    attentionOut: 'post_self_attn_layernorm',
    mlpIn: 'post_attention_layernorm',
    mlpOut: 'post_mlp_layernorm',
    final: 'model.norm',
  },
  attention: {
    outputBias: false,
    position: { ...partialRope(10_000, 0.5), pairs: 'adjacent' },
  },
  mlp: fusedMlp(['mlp.gate_up_proj', 'mlp.down_proj'], false, or('silu', 'hidden_act')),
});

/** GLM-4 as it was first: norms ahead of the branches alone. */
export const glm: Wiring = {
  ...glm4,
  norms: llama.norms,
  attention: { ...glm4.attention, bias: flag('attention_bias', true) },
};

export const hunyuan: Wiring = vary(llama, {
  norm: { ...llama.norm, epsilon: or(1e-5, 'rms_norm_eps') },
  attention: {
    headNorm: {
      query: 'self_attn.query_layernorm',
      key: 'self_attn.key_layernorm',
      over: 'head',
      afterRope: true,
    },
  },
  mlp: { ...llama.mlp, bias: false },
});

/** Names and fields of latent attention, as DeepSeek V2 has them. */
export const latent: LatentWiring = {
  queryRank: at('q_lora_rank'),
  keyValueRank: at('kv_lora_rank'),
  plain: at('qk_nope_head_dim'),
  rotated: at('qk_rope_head_dim'),
  value: at('v_head_dim'),
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
export const minicpm3: Wiring = vary(llama, {
  norm: { ...llama.norm, epsilon: or(1e-5, 'rms_norm_eps') },
  embedding: { scale: or(12, 'scale_emb') },
  residualScale: { depth: or(1.4, 'scale_depth') },
  attention: {
    latent,
    position: { theta: 10_000, dims: latent.rotated },
  },
  head: { widthBase: or(256, 'dim_model_base') },
});

/** LayerNorms of 1 + w, squared ReLU, half of each head rotating. */
export const nemotron: Wiring = {
  ...llama,
  norm: { kind: 'layer_plus_one', bias: true, epsilon: or(1e-5, 'norm_eps') },
  attention: { ...llama.attention, position: partialRope(10_000, 0.5) },
  mlp: plainMlp(['mlp.up_proj', 'mlp.down_proj'], flag('mlp_bias', false), or('relu2', 'hidden_act')),
};

/** LayerNorms without weights. */
export const olmo: Wiring = {
  ...llama,
  norm: { kind: 'layer', bias: false, weightless: true, epsilon: or(1e-5) },
  mlp: { ...llama.mlp, bias: false },
  fixed: [{ field: 'clip_qkv', value: null, otherwise: 'clipped queries, keys and values' }],
};

/** OLMo 2 with windows; only layers that see all have scaled positions. */
export const olmo3: Wiring = vary(olmo2, {
  attention: {
    position: {
      theta: 500_000,
      local: or(500_000, 'rope_parameters.rope_theta', 'rope_theta'),
    },
    window: windowEvery(or(4096, 'sliding_window'), or(4)),
  },
});

/** One LayerNorm for both branches, biases everywhere. */
export const phi: Wiring = vary(llama, {
  norm: { kind: 'layer', bias: true, epsilon: or(1e-5, 'layer_norm_eps') },
  norms: { attentionIn: 'input_layernorm', mlpIn: 'input_layernorm', final: 'model.final_layernorm' },
  parallel: true,
  attention: {
    bias: true,
    output: 'self_attn.dense',
    outputBias: true,
    position: partialRope(10_000, 0.5),
  },
  mlp: {
    ...plainMlp(['mlp.fc1', 'mlp.fc2'], flag('mlp_bias', false), or('gelu_new', 'hidden_act')),
    bias: true,
  },
  head: { bias: 'lm_head.bias' },
  fixed: [{ field: 'qk_layernorm', value: false, otherwise: 'a norm for every head' }],
});

export const seedOss: Wiring = vary(llama, {
  attention: {
    bias: flag('attention_bias', true),
    outputBias: flag('attention_out_bias', false),
  },
});

/** LayerNorms, a plain MLP, biases. */
export const starcoder2: Wiring = vary(llama, {
  norm: { kind: 'layer', bias: true, epsilon: or(1e-5, 'norm_epsilon') },
  attention: {
    bias: flag('use_bias', true),
    outputBias: flag('use_bias', true),
    window: windowOf(at('sliding_window')),
  },
  mlp: {
    ...plainMlp(['mlp.c_fc', 'mlp.c_proj'], flag('mlp_bias', false), or('gelu_pytorch_tanh', 'hidden_act')),
    bias: flag('use_bias', true),
  },
});
