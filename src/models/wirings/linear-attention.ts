/**
 * Wirings with the gated delta rule, recurrent units or decaying attention (transformers: modeling_qwen3_next.py,
 * modeling_qwen3_5.py, modeling_qwen3_5_moe.py, modeling_olmo_hybrid.py, modeling_recurrent_gemma.py, modeling_minimax.py), and those of
 * Gemma 3n and 4 (modeling_gemma3n.py, modeling_gemma4.py). Defaults are those of the configuration classes.
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
import { recurrentUnit } from '../resolved-convolutions';
import { everyLayer, numbersAt } from '../resolved-experts';
import { delta, lightning, listed } from '../resolved-mixers';
import {
  apart,
  gatedMlp,
  HEAD_NORM,
  type NumberField,
  vary,
  type Wiring,
  windowEvery,
  windowOf,
} from '../wiring';
import { mixtral, mixtralExperts, qwenNextExperts } from './experts';
import { siluInside } from './hybrid';
import { gemma, llama, olmo2, partialRope } from './llama';

/** The activation of what is no MLP is GELU by tanh, whatever a config asks of the MLP. */
const GELU_BESIDE = {
  field: 'hidden_activation',
  value: 'gelu_pytorch_tanh',
  otherwise: 'another activation beside the MLP',
};
const VALUES_ARE_KEYS = flag('attention_k_eq_v', false);

const qwenDelta = (modules: 'joined' | 'by_key_head') =>
  delta({ modules, norm: 'norm', normEpsilon: or(1e-6, 'rms_norm_eps'), output: 'out_proj' });

/** Three layers of the gated delta rule for one of gated attention. */
export const qwen35: Wiring = vary(llama, {
  fixed: [siluInside('hidden_act')],
  sizes: { ...llama.sizes, headDim: or(256, 'head_dim') },
  norm: { kind: 'rms_plus_one', bias: false, epsilon: or(1e-6, 'rms_norm_eps') },
  attention: {
    gated: true,
    headNorm: HEAD_NORM,
    position: partialRope(10_000, 0.25),
  },
  mlp: { ...llama.mlp, bias: false },
  mixers: {
    of: (config, layer) =>
      listed(
        'layer_types',
        (layer + 1) % needSize(config, or(4, 'full_attention_interval')) === 0
          ? 'full_attention'
          : 'linear_attention',
      )(config, layer),
    kinds: { linear_attention: qwenDelta('joined') },
  },
});

export const qwen3Next: Wiring = {
  ...qwen35,
  mixers: { ...qwen35.mixers!, kinds: { linear_attention: qwenDelta('by_key_head') } },
  experts: qwenNextExperts,
};

/** Qwen 3.5 with experts in every layer, whose shares always sum to 1. */
export const qwen35Moe: Wiring = {
  ...qwen35,
  experts: {
    ...qwenNextExperts,
    layers: everyLayer,
    router: { ...qwenNextExperts.router, normalized: { when: true } },
  },
};

export const olmoHybrid: Wiring = {
  ...olmo2,
  fixed: [siluInside('hidden_act')],
  norm: { ...olmo2.norm, epsilon: or(1e-6, 'rms_norm_eps') },
  norms: {
    attentionOut: 'feedforward_layer_norm',
    mlpOut: 'post_feedforward_layernorm',
    final: 'model.norm',
  },
  mixers: {
    of: (config, layer) =>
      listed('layer_types', layer % 4 === 3 ? 'full_attention' : 'linear_attention')(config, layer),
    kinds: {
      linear_attention: delta({
        modules: 'apart',
        norm: 'o_norm',
        normEpsilon: or(1e-5),
        output: 'o_proj',
        negative: flag('linear_allow_neg_eigval', true),
      }),
    },
    norms: {
      linear_attention: {
        attentionIn: 'attention_layer_norm',
        mlpIn: 'feedforward_layer_norm',
        attentionOut: undefined,
        mlpOut: undefined,
      },
    },
  },
};

/** Two layers of a gated recurrent unit for one of attention to a window. */
export const recurrentGemma: Wiring = vary(gemma, {
  embedding: { scale: 'sqrt_hidden_bf16' },
  sizes: {
    ...gemma.sizes,
    headDim: at('head_dim'),
    inner: (config) => needSize(config, at('intermediate_size')) / 2,
  },
  norms: { attentionIn: 'temporal_pre_norm', mlpIn: 'channel_pre_norm', final: 'model.final_norm' },
  attention: {
    projections: apart('temporal_block.q_proj', 'temporal_block.k_proj', 'temporal_block.v_proj'),
    output: 'temporal_block.o_proj',
    outputBias: true,
    position: partialRope(10_000, 0.5),
    window: windowOf(or(2048, 'attention_window_size')),
  },
  mlp: gatedMlp(
    ['mlp_block.gate_proj', 'mlp_block.up_proj', 'mlp_block.down_proj'],
    true,
    or('gelu_pytorch_tanh', 'hidden_activation'),
  ),
  head: { softcap: or(30, 'logits_soft_cap') },
  fixed: [GELU_BESIDE],
  mixers: {
    of: (config, layer) => {
      const types = valueAt(config, 'block_types') ?? valueAt(config, '_block_types');
      const list = Array.isArray(types) ? types : ['recurrent', 'recurrent', 'attention'];
      return String(list[layer % list.length]);
    },
    kinds: { recurrent: recurrentUnit },
  },
});

const one = or(1);
/** Decaying attention in most layers, streams of norms, factors on both sides of the sum. */
export const minimax: Wiring = {
  ...mixtral,
  fixed: [
    { field: 'hidden_act', value: 'silu', otherwise: 'another activation ahead of decaying attention' },
  ],
  experts: mixtralExperts,
  replacing: {
    keep: {
      attention: or(1, 'full_attn_alpha_factor'),
      full_attention: or(1, 'full_attn_alpha_factor'),
      linear_attention: or(1, 'linear_attn_alpha_factor'),
      mlp: or(1, 'mlp_alpha_factor'),
    },
    share: {
      attention: or(1, 'full_attn_beta_factor'),
      full_attention: or(1, 'full_attn_beta_factor'),
      linear_attention: or(1, 'linear_attn_beta_factor'),
      mlp: or(1, 'mlp_beta_factor'),
    },
  },
  mixers: {
    of: (config, layer) =>
      listed('layer_types', layer % 2 === 0 ? 'linear_attention' : 'full_attention')(config, layer),
    kinds: { linear_attention: lightning },
  },
};

/** Whether a layer takes the keys of another. */
function isShared(config: ConfigFile, layer: number, shared: NumberField): boolean {
  const first = needSize(config, at('num_hidden_layers')) - needNumber(config, shared);
  return first > 0 && layer >= first;
}

/** Plain norms on both sides, normed values, wider heads in layers that see all, and a share of the token for each layer. */
export const gemma4: Wiring = vary(gemma, {
  norm: { kind: 'rms', bias: false, epsilon: or(1e-6, 'rms_norm_eps') },
  norms: {
    attentionIn: 'input_layernorm',
    attentionOut: 'post_attention_layernorm',
    mlpIn: 'pre_feedforward_layernorm',
    mlpOut: 'post_feedforward_layernorm',
    final: 'model.norm',
  },
  globalHeadDim: (config, layer) =>
    readSize(config, {
      fields: valueAt(config, 'per_layer_config')
        ? [`per_layer_config.${layer}.head_dim`]
        : ['global_head_dim'],
      ...(valueAt(config, 'per_layer_config') ? {} : { orElse: 512 }),
    }),
  globalKeyValueHeads: (config, layer) =>
    readSize(config, at(`per_layer_config.${layer}.num_key_value_heads`)) ??
    (readFlag(config, VALUES_ARE_KEYS) ? readSize(config, at('num_global_key_value_heads')) : undefined),
  sharedKeys: or(0, 'num_kv_shared_layers'),
  layerInner: (config, layer) =>
    readFlag(config, flag('use_double_wide_mlp', false)) &&
    isShared(config, layer, or(0, 'num_kv_shared_layers'))
      ? 2 * needSize(config, at('intermediate_size'))
      : undefined,
  experts: {
    layers: everyLayer,
    count: at('num_experts'),
    chosen: at('top_k_experts'),
    inner: at('moe_intermediate_size'),
    weights: { up: 'experts.gate_up_proj', down: 'experts.down_proj', storage: 'out_in' },
    router: {
      module: 'router.proj',
      by: 'softmax',
      normalized: { when: true },
      norm: 'router.scale',
      factors: 'router.per_expert_scale',
    },
    beside: {
      when: flag('enable_moe_block', false),
      mlpOut: 'post_feedforward_layernorm_1',
      in: 'pre_feedforward_layernorm_2',
      out: 'post_feedforward_layernorm_2',
    },
  },
  attention: {
    scale: one.orElse,
    headNorm: HEAD_NORM,
    valueNorm: true,
    valuesAreKeys: VALUES_ARE_KEYS,
    position: { theta: 1_000_000, local: or(10_000, 'rope_local_base_freq') },
    window: windowEvery(or(512, 'sliding_window'), or(6)),
  },
  perLayer: {
    width: or(256, 'hidden_size_per_layer_input'),
    rows: at('vocab_size_per_layer_input', 'vocab_size'),
    table: 'model.embed_tokens_per_layer.weight',
    projection: 'model.per_layer_model_projection',
    norm: 'model.per_layer_projection_norm',
    modules: {
      gate: 'per_layer_input_gate',
      out: 'per_layer_projection',
      norm: 'post_per_layer_input_norm',
    },
    factor: 'layer_scalar',
  },
  head: { softcap: at('final_logit_softcapping') },
  fixed: [GELU_BESIDE],
});

/** Share of the gate's values that are left out: 95 % in the first ten layers where a config has none. */
function sparsity(config: ConfigFile, layer: number): number {
  const stated = numbersAt(config, 'activation_sparsity_pattern');
  if (stated) return stated[layer] ?? 0;
  return needSize(config, at('num_hidden_layers')) > 10 && layer < 10 ? 0.95 : 0;
}

/** Gemma 4's layers with a narrow residual beside attention, among several streams that predict and correct each other. */
export const gemma3n: Wiring = {
  ...gemma,
  sizes: {
    ...gemma.sizes,
    inner: (config) =>
      needSize(config, {
        fields: Array.isArray(valueAt(config, 'intermediate_size'))
          ? ['intermediate_size.0']
          : ['intermediate_size'],
        orElse: 16_384,
      }),
  },
  layerInner: (config, layer) => numbersAt(config, 'intermediate_size')?.[layer],
  norm: gemma4.norm,
  norms: gemma4.norms,
  sharedKeys: or(15, 'num_kv_shared_layers'),
  attention: {
    ...gemma4.attention,
    valuesAreKeys: false,
    window: windowEvery(or(512, 'sliding_window'), or(5)),
  },
  mlp: { ...gemma.mlp, sparse: sparsity } as Wiring['mlp'],
  perLayer: {
    width: gemma4.perLayer!.width,
    rows: or(262_144, 'vocab_size_per_layer_input'),
    table: gemma4.perLayer!.table,
    projection: gemma4.perLayer!.projection,
    norm: gemma4.perLayer!.norm,
    modules: gemma4.perLayer!.modules,
  },
  laurel: {
    rank: or(64, 'laurel_rank'),
    left: 'laurel.linear_left',
    right: 'laurel.linear_right',
    norm: 'laurel.post_laurel_norm',
  },
  planes: {
    count: or(4, 'altup_num_inputs'),
    begin: 'model.altup_projections',
    end: 'model.altup_unembed_projections',
    modules: {
      norm: 'altup.router_norm',
      router: 'altup.modality_router',
      predict: 'altup.prediction_coefs',
      correct: 'altup.correction_coefs',
      scale: 'altup.correct_output_scale',
    },
    scaled: flag('altup_correct_scale', true),
  },
  head: { softcap: or(30, 'final_logit_softcapping') },
  fixed: [
    GELU_BESIDE,
    { field: 'altup_active_idx', value: 0, otherwise: 'another stream than the first at work' },
  ],
};
