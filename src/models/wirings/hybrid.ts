/**
 * Wirings with mixers that are no attention (transformers: modeling_mamba.py, modeling_mamba2.py, modeling_bamba.py,
 * modeling_granitemoehybrid.py, modeling_falcon_h1.py, modeling_zamba2.py, modeling_nemotron_h.py, modeling_jamba.py, modeling_lfm2.py,
 * modeling_lfm2_moe.py). Defaults are those of the configuration classes.
 */
import {
  at,
  type ConfigFile,
  flag,
  needNumber,
  needSize,
  or,
  readFlag,
  readSize,
  valueAt,
} from '../config-reader';
import { sharedAhead, shortConvolution } from '../resolved-convolutions';
import { layersByPeriod, layersFrom, numbersAt } from '../resolved-experts';
import { listed, mamba2 as mamba2Mixer, mamba as mambaMixer } from '../resolved-mixers';
import { apart, fusedMlp, gatedMlp, type MixerMaker, named, plainMlp, vary, type Wiring } from '../wiring';
import { graniteExperts } from './experts';
import { granite, llama, partialRope } from './llama';

/** Behind its convolution a mixer has SiLU; a config can ask for another activation there. */
export const siluInside = (field: string) => ({
  field,
  value: 'silu',
  otherwise: 'another activation behind the convolution',
});

/** One mixer a layer and nothing else; attention there is none. */
const alone = {
  single: true,
  sizes: { ...llama.sizes, heads: or(1), headDim: or(4) },
  norm: { ...llama.norm, epsilon: or(1e-5, 'layer_norm_epsilon') },
  norms: { attentionIn: 'norm', final: 'backbone.norm_f' },
  fixed: [siluInside('hidden_act')],
} as const;

export const mamba: Wiring = {
  ...llama,
  ...alone,
  mixers: {
    of: () => 'mamba',
    kinds: {
      mamba: mambaMixer('mixer', {
        inner: (config, hidden) =>
          readSize(config, at('intermediate_size')) ?? hidden * needSize(config, or(2, 'expand')),
        states: or(16, 'state_size'),
        taps: or(4, 'conv_kernel'),
        rank: at('time_step_rank'),
        bias: flag('use_bias', false),
        convBias: flag('use_conv_bias', true),
      }),
    },
  },
};

export const mamba2: Wiring = {
  ...llama,
  ...alone,
  mixers: {
    of: () => 'mamba',
    kinds: {
      mamba: mamba2Mixer('mixer', {
        heads: 'num_heads',
        headDim: 'head_dim',
        states: 'state_size',
        groups: 'n_groups',
        taps: 'conv_kernel',
        convBias: flag('use_conv_bias', true),
        bias: flag('use_bias', false),
        epsilon: or(1e-5, 'layer_norm_epsilon'),
      }),
    },
  },
};

const bambaFields = {
  heads: 'mamba_n_heads',
  headDim: 'mamba_d_head',
  states: 'mamba_d_state',
  groups: 'mamba_n_groups',
  taps: 'mamba_d_conv',
  convBias: flag('mamba_conv_bias', true),
  bias: flag('mamba_proj_bias', false),
  epsilon: or(1e-5, 'rms_norm_eps'),
};

const feedForward = {
  gate: 'feed_forward.gate_proj',
  up: 'feed_forward.up_proj',
  down: 'feed_forward.down_proj',
  bias: flag('mlp_bias', false),
  activation: or('silu', 'hidden_act'),
};
const beforeFeedForward = {
  attentionIn: 'input_layernorm',
  mlpIn: 'pre_ff_layernorm',
  final: 'model.final_layernorm',
};

export const bamba: Wiring = {
  ...llama,
  fixed: [siluInside('hidden_act')],
  norm: { ...llama.norm, epsilon: or(1e-5, 'rms_norm_eps') },
  norms: beforeFeedForward,
  attention: { ...llama.attention, position: partialRope(10_000, 0.5) },
  mlp: feedForward,
  mixers: {
    of: (config, layer) => (numbersAt(config, 'attn_layer_indices')?.includes(layer) ? 'attention' : 'mamba'),
    kinds: { mamba: mamba2Mixer('mamba', bambaFields) },
  },
};

const graniteMamba = mamba2Mixer('mamba', { ...bambaFields, epsilon: or(1e-6, 'rms_norm_eps') });
export const graniteHybrid: Wiring = {
  ...granite,
  fixed: [siluInside('hidden_act')],
  sizes: { ...llama.sizes, inner: at('shared_intermediate_size') },
  attention: { ...granite.attention, position: 'none' },
  mlp: fusedMlp(['shared_mlp.input_linear', 'shared_mlp.output_linear'], false, or('silu', 'hidden_act')),
  experts: {
    ...graniteExperts,
    shared: {
      modules: [undefined, 'shared_mlp.input_linear', 'shared_mlp.output_linear'],
      inner: at('shared_intermediate_size'),
    },
  },
  mixers: {
    of: listed('layer_types', 'mamba'),
    kinds: { mamba: graniteMamba, linear_attention: graniteMamba },
  },
  variants: [
    {
      when: { field: 'position_embedding_type', is: 'rope' },
      change: { attention: granite.attention },
    },
  ],
};

/** Attention and Mamba-2 side by side, and a factor for nearly everything. */
const falconMamba = mamba2Mixer('mamba', {
  ...bambaFields,
  bias: flag('mamba_proj_bias', false),
  outBias: flag('projectors_bias', false),
  grouped: true,
  normed: flag('mamba_rms_norm', false),
  normFirst: flag('mamba_norm_before_gate', true),
  inFactor: or(1, 'ssm_in_multiplier'),
  factors: 'ssm_multipliers',
  outFactor: or(1, 'ssm_out_multiplier'),
});
const falconBoth: MixerMaker = (block, attention) => [
  ...falconMamba(block, attention),
  { ...attention(), factor: or(1, 'attention_out_multiplier') },
];
export const falconH1: Wiring = vary(llama, {
  norm: { ...llama.norm, epsilon: or(1e-5, 'rms_norm_eps') },
  embedding: { scale: or(1, 'embedding_multiplier') },
  norms: beforeFeedForward,
  attention: {
    inputFactor: or(1, 'attention_in_multiplier'),
    keyFactor: or(1, 'key_multiplier'),
  },
  mlp: {
    ...feedForward,
    gateFactor: or(1, 'mlp_multipliers.0'),
    downFactor: or(1, 'mlp_multipliers.1'),
  },
  head: { factor: or(1, 'lm_head_multiplier') },
  mixers: { of: () => 'both', kinds: { both: falconBoth } },
  fixed: [siluInside('hidden_act')],
});

/** One branch a layer: Mamba-2, attention without positions, or an MLP. */
const PATTERN: Readonly<Record<string, string>> = { M: 'mamba', '*': 'attention', '-': 'mlp', E: 'moe' };
function nemotronKind(config: ConfigFile, layer: number): string {
  const pattern = valueAt(config, 'hybrid_override_pattern');
  if (typeof pattern === 'string') return PATTERN[pattern[layer] ?? ''] ?? 'moe';
  return listed('layers_block_type')(config, layer);
}
const nemotronMamba = mamba2Mixer('mixer', {
  heads: 'mamba_num_heads',
  headDim: 'mamba_head_dim',
  states: 'ssm_state_size',
  groups: 'n_groups',
  taps: 'conv_kernel',
  convBias: flag('use_conv_bias', true),
  bias: flag('use_bias', false),
  epsilon: or(1e-5, 'layer_norm_epsilon'),
  grouped: true,
  least: or(0.001, 'mamba_dt_min', 'time_step_min'),
});
export const nemotronH: Wiring = vary(llama, {
  fixed: [
    siluInside('mamba_hidden_act'),
    { field: 'tie_word_embeddings', value: false, otherwise: 'a tied head, which its class does not tie' },
  ],
  sizes: {
    ...llama.sizes,
    layers: { fields: ['num_hidden_layers'], lengthOf: 'layers_block_type' },
  },
  norm: alone.norm,
  norms: alone.norms,
  single: true,
  attention: {
    projections: apart('mixer.q_proj', 'mixer.k_proj', 'mixer.v_proj'),
    // regardless of attention_bias
    bias: false,
    output: 'mixer.o_proj',
    outputBias: false,
    position: 'none',
  },
  mlp: plainMlp(['mixer.up_proj', 'mixer.down_proj'], flag('mlp_bias', false), or('relu2', 'mlp_hidden_act')),
  mixers: {
    of: nemotronKind,
    kinds: { mamba: nemotronMamba, linear_attention: nemotronMamba, mlp: 'mlp', moe: 'refused' },
  },
});

export const jamba: Wiring = {
  ...llama,
  fixed: [siluInside('hidden_act')],
  norms: beforeFeedForward,
  attention: { ...llama.attention, bias: false, outputBias: false, position: 'none' },
  mlp: { ...feedForward, bias: false },
  experts: {
    layers: layersByPeriod('expert_layer_period', 'expert_layer_offset', [2, 1]),
    count: at('num_experts'),
    chosen: or(2, 'num_experts_per_tok'),
    inner: at('intermediate_size'),
    weights: named('feed_forward.experts', 'gate_proj', 'up_proj', 'down_proj'),
    router: { module: 'feed_forward.router', by: 'softmax' },
  },
  mixers: {
    of: (config, layer) =>
      layersByPeriod('attn_layer_period', 'attn_layer_offset', [8, 4])(config, layer) ? 'attention' : 'mamba',
    kinds: {
      mamba: mambaMixer('mamba', {
        inner: (config, hidden) => hidden * needSize(config, or(2, 'mamba_expand')),
        states: or(16, 'mamba_d_state'),
        taps: or(4, 'mamba_d_conv'),
        rank: at('mamba_dt_rank'),
        bias: flag('mamba_proj_bias', false),
        convBias: flag('mamba_conv_bias', true),
        norms: ['dt_layernorm', 'b_layernorm', 'c_layernorm'],
      }),
    },
  },
};

/** LFM2's own rule for the width of its MLPs: two thirds, times a factor, up to a multiple. */
function lfmInner(config: ConfigFile): number {
  const stated = needSize(config, at('block_ff_dim', 'intermediate_size'));
  if (!readFlag(config, flag('block_auto_adjust_ff_dim', true))) return stated;
  const scaled = Math.floor(
    needNumber(config, or(1, 'block_ffn_dim_multiplier')) * Math.floor((2 * stated) / 3),
  );
  const multiple = needSize(config, or(256, 'block_multiple_of'));
  return multiple * Math.ceil(scaled / multiple);
}
export const lfm2: Wiring = vary(llama, {
  sizes: { ...llama.sizes, inner: lfmInner },
  norm: { ...llama.norm, epsilon: or(1e-5, 'norm_eps') },
  norms: { attentionIn: 'operator_norm', mlpIn: 'ffn_norm', final: 'model.embedding_norm' },
  attention: {
    bias: false,
    output: 'self_attn.out_proj',
    outputBias: false,
    headNorm: { query: 'self_attn.q_layernorm', key: 'self_attn.k_layernorm', over: 'head' },
    position: { theta: 1_000_000 },
  },
  mlp: gatedMlp(['feed_forward.w1', 'feed_forward.w3', 'feed_forward.w2'], false, or('silu')),
  mixers: {
    of: (config, layer) => {
      const full = numbersAt(config, 'full_attn_idxs');
      return full ? (full.includes(layer) ? 'attention' : 'conv') : listed('layer_types')(config, layer);
    },
    kinds: { conv: shortConvolution },
  },
});

export const lfm2Moe: Wiring = {
  ...lfm2,
  sizes: llama.sizes,
  experts: {
    layers: layersFrom('num_dense_layers', 2),
    count: at('num_experts'),
    chosen: at('num_experts_per_tok'),
    inner: at('moe_intermediate_size'),
    weights: named('feed_forward.experts', 'w1', 'w3', 'w2'),
    router: {
      module: 'feed_forward.gate',
      by: 'sigmoid',
      correction: {
        name: 'feed_forward.expert_bias',
        leadingShape: [],
        when: flag('use_expert_bias', true),
      },
      normalized: { when: flag('norm_topk_prob', true), added: 1e-6 },
      scale: or(1, 'routed_scaling_factor'),
    },
  },
};

const zambaMamba = (module: string) =>
  mamba2Mixer(module, {
    heads: 'n_mamba_heads',
    headDim: 'mamba_headdim',
    states: 'mamba_d_state',
    groups: 'mamba_ngroups',
    taps: 'mamba_d_conv',
    convBias: true,
    bias: flag('add_bias_linear', false),
    epsilon: or(1e-5),
    grouped: true,
    least: or(0.001, 'time_step_min'),
  });

/** Mamba-2, in some layers of the stream and what a transformer shared by them makes of it (modeling_zamba2.py). */
export const zamba2: Wiring = {
  ...llama,
  single: true,
  sizes: {
    ...llama.sizes,
    headDim: at('attention_head_dim'),
    inner: at('ffn_hidden_size', 'intermediate_size'),
  },
  norm: { ...llama.norm, epsilon: or(1e-5, 'rms_norm_eps') },
  norms: { attentionIn: 'input_layernorm', final: 'model.final_layernorm' },
  attention: { ...llama.attention, bias: false, outputBias: false, position: 'none' },
  mlp: fusedMlp(
    ['feed_forward.gate_up_proj', 'feed_forward.down_proj'],
    flag('add_bias_linear', false),
    or('gelu', 'hidden_act'),
  ),
  mixers: {
    of: listed('layers_block_type', 'mamba'),
    kinds: {
      mamba: zambaMamba('mamba'),
      linear_attention: zambaMamba('mamba'),
      hybrid: sharedAhead(zambaMamba('mamba_decoder.mamba')),
    },
    norms: { hybrid: { attentionIn: 'mamba_decoder.input_layernorm' } },
  },
  fixed: [{ field: 'use_long_context', value: false, otherwise: 'positions scaled for long texts' }],
};
