/**
 * Wirings with experts (transformers: modeling_mixtral.py, modeling_qwen2_moe.py, modeling_qwen3_moe.py, modeling_olmoe.py,
 * modeling_granitemoe.py, modeling_phimoe.py, modeling_ernie4_5_moe.py, modeling_glm4_moe.py, modeling_gpt_oss.py,
 * modeling_llama4.py, modeling_deepseek_v2.py, modeling_dots1.py). Defaults are those of the configuration classes.
 */
import { at, flag, needNumber, needSize, or, valueAt } from '../config-reader';
import { everyLayer, layersFrom, numbersAt } from '../resolved-experts';
import { type ExpertsWiring, HEAD_NORM, type LayerRule, named, vary, type Wiring, windowOf } from '../wiring';
import { granite, llama, mistral, olmo2, partialRope, qwen2, qwen3 } from './llama';
import { ernie, latent } from './relatives';

const projections = named('mlp.experts', 'gate_proj', 'up_proj', 'down_proj');
const w123 = named('block_sparse_moe.experts', 'w1', 'w3', 'w2');
const gated = (module: string) =>
  [`${module}.gate_proj`, `${module}.up_proj`, `${module}.down_proj`] as const;

/** Qwen: every `decoder_sparse_step`-th layer, but for those of a list. */
const sparseLayers: LayerRule = (config, layer) =>
  (layer + 1) % needSize(config, or(1, 'decoder_sparse_step')) === 0 &&
  !numbersAt(config, 'mlp_only_layers')?.includes(layer);

export const mixtralExperts: ExpertsWiring = {
  layers: everyLayer,
  count: at('num_local_experts', 'num_experts'),
  chosen: or(2, 'num_experts_per_tok'),
  inner: at('intermediate_size'),
  weights: w123,
  router: { module: 'block_sparse_moe.gate', by: 'softmax', normalized: { when: true } },
};

export const mixtral: Wiring = vary(mistral, {
  norm: { ...llama.norm, epsilon: or(1e-5, 'rms_norm_eps') },
  attention: {
    position: { theta: 1_000_000 },
    window: windowOf(at('sliding_window')),
  },
  experts: mixtralExperts,
});

export const qwenExperts: ExpertsWiring = {
  layers: sparseLayers,
  count: at('num_experts', 'num_local_experts'),
  chosen: at('num_experts_per_tok'),
  inner: at('moe_intermediate_size'),
  weights: projections,
  router: {
    module: 'mlp.gate',
    by: 'softmax',
    normalized: { when: flag('norm_topk_prob', false) },
  },
};

const sharedExpert: NonNullable<ExpertsWiring['shared']> = {
  modules: gated('mlp.shared_expert'),
  inner: at('shared_expert_intermediate_size'),
  factor: 'mlp.shared_expert_gate',
};

export const qwen2Moe: Wiring = {
  ...qwen2,
  experts: { ...qwenExperts, chosen: or(4, 'num_experts_per_tok'), shared: sharedExpert },
};
/** Shared expert as Qwen 3 Next has it, whose shares sum to 1. */
export const qwenNextExperts: ExpertsWiring = {
  ...qwenExperts,
  router: { ...qwenExperts.router, normalized: { when: flag('norm_topk_prob', true) } },
  shared: sharedExpert,
};
const eightExperts: ExpertsWiring = { ...qwenExperts, chosen: or(8, 'num_experts_per_tok') };
export const qwen3Moe: Wiring = { ...qwen3, experts: eightExperts };

export const olmoe: Wiring = {
  ...llama,
  norm: { ...llama.norm, epsilon: or(1e-5, 'rms_norm_eps') },
  attention: { ...llama.attention, headNorm: olmo2.attention.headNorm! },
  experts: { ...eightExperts, layers: everyLayer, inner: at('intermediate_size') },
  fixed: [{ field: 'clip_qkv', value: null, otherwise: 'clipped queries, keys and values' }],
};

export const graniteExperts: ExpertsWiring = {
  layers: (config) => needNumber(config, or(0, 'num_local_experts')) > 0,
  count: at('num_local_experts'),
  chosen: or(2, 'num_experts_per_tok'),
  inner: at('intermediate_size'),
  weights: {
    up: 'block_sparse_moe.input_linear.weight',
    down: 'block_sparse_moe.output_linear.weight',
    storage: 'out_in',
  },
  router: { module: 'block_sparse_moe.router.layer', by: 'softmax_of_chosen' },
};

export const graniteMoe: Wiring = { ...granite, experts: graniteExperts };

export const phimoe: Wiring = {
  ...mixtral,
  norm: { kind: 'layer', bias: true, epsilon: or(1e-5, 'rms_norm_eps') },
  attention: { ...llama.attention, position: { theta: 1_000_000 }, window: mixtral.attention.window! },
  experts: {
    ...mixtralExperts,
    router: {
      module: 'block_sparse_moe.gate',
      by: 'sparsemixer',
      margin: or(0.01, 'router_jitter_noise'),
    },
  },
  fixed: [{ field: 'num_experts_per_tok', value: 2, otherwise: 'sparsemixer chooses two' }],
  variants: [{ when: flag('lm_head_bias', false), change: { head: { bias: 'lm_head.bias' } } }],
};

export const ernieMoe: Wiring = {
  ...ernie,
  experts: {
    layers: (config, layer) =>
      (layer + 1) % needSize(config, or(1, 'moe_layer_interval')) === 0 &&
      layer >= needNumber(config, or(1, 'moe_layer_start_index')) &&
      (needNumber(config, or(-1, 'moe_layer_end_index')) < 0 ||
        layer <= needNumber(config, at('moe_layer_end_index'))),
    count: at('moe_num_experts'),
    chosen: at('moe_k'),
    inner: at('moe_intermediate_size'),
    weights: projections,
    bias: flag('use_bias', false),
    router: {
      module: 'mlp.gate',
      by: 'softmax',
      correction: { name: 'mlp.moe_statics.e_score_correction_bias', leadingShape: [1] },
      normalized: { when: true, floor: or(1e-12, 'moe_norm_min') },
    },
    shared: {
      modules: gated('mlp.shared_experts'),
      inner: at('moe_intermediate_size'),
      widthFactor: or(0, 'moe_num_shared_experts'),
    },
  },
};

const sharedExperts: NonNullable<ExpertsWiring['shared']> = {
  modules: gated('mlp.shared_experts'),
  inner: at('moe_intermediate_size'),
  widthFactor: or(0, 'n_shared_experts'),
};

/** Llama with experts (configuration_deepseek.py and modeling_deepseek.py of deepseek-ai/deepseek-moe-16b-base). */
export const deepseek: Wiring = {
  ...llama,
  sizes: { ...llama.sizes, headDim: at() },
  experts: {
    ...qwenExperts,
    layers: layersFrom('first_k_dense_replace', 0),
    count: at('n_routed_experts'),
    router: {
      ...qwenExperts.router,
      normalized: { when: flag('norm_topk_prob', false), added: 1e-20 },
    },
    shared: sharedExperts,
  },
  fixed: [
    { field: 'moe_layer_freq', value: 1, otherwise: 'layers without experts between others' },
    { field: 'scoring_func', value: 'softmax', otherwise: 'shares of another kind' },
  ],
};

const glmAttention: Wiring['attention'] = {
  ...llama.attention,
  outputBias: false,
  position: partialRope(10_000, 0.5),
};
export const glm4Moe: Wiring = {
  ...llama,
  attention: glmAttention,
  experts: {
    layers: layersFrom('first_k_dense_replace', 1),
    count: at('n_routed_experts'),
    chosen: at('num_experts_per_tok'),
    inner: at('moe_intermediate_size'),
    weights: projections,
    router: {
      module: 'mlp.gate',
      by: 'sigmoid',
      correction: { name: 'mlp.gate.e_score_correction_bias', leadingShape: [] },
      groups: { count: at('n_group'), chosen: at('topk_group'), summed: 2 },
      normalized: { when: flag('norm_topk_prob', true), added: 1e-20 },
      scale: or(1, 'routed_scaling_factor'),
    },
    shared: sharedExperts,
  },
  variants: [
    {
      when: flag('use_qk_norm', false),
      change: {
        attention: {
          ...glmAttention,
          headNorm: HEAD_NORM,
        },
      },
    },
  ],
};

const deepseek2Plain: Wiring = {
  ...llama,
  attention: {
    ...llama.attention,
    latent,
    yarnScores: true,
    position: { theta: 10_000, pairs: 'adjacent', dims: latent.rotated },
  },
  experts: {
    layers: layersFrom('first_k_dense_replace', 0),
    count: at('n_routed_experts'),
    chosen: at('num_experts_per_tok'),
    inner: at('moe_intermediate_size'),
    weights: projections,
    router: {
      module: 'mlp.gate',
      by: 'softmax',
      scale: or(1, 'routed_scaling_factor'),
    },
    shared: sharedExperts,
  },
};

/** Latent attention, and experts chosen among all, or within the best groups (modeling_deepseek_v2.py). */
export const deepseek2: Wiring = {
  ...deepseek2Plain,
  variants: [
    {
      when: { field: 'topk_method', is: 'group_limited_greedy' },
      change: {
        experts: {
          ...deepseek2Plain.experts!,
          router: {
            ...deepseek2Plain.experts!.router,
            groups: { count: at('n_group'), chosen: at('topk_group'), summed: 1 },
          },
        },
      },
    },
  ],
};

/** Shares by sigmoid with a correction, groups by their best two (modeling_deepseek_v3.py). */
const deepseek3Attention: Wiring['attention'] = {
  ...deepseek2.attention,
  position: { theta: 10_000, dims: latent.rotated },
};
export const deepseek3: Wiring = {
  ...deepseek2,
  attention: deepseek3Attention,
  experts: {
    ...deepseek2.experts!,
    layers: layersFrom('first_k_dense_replace', 3),
    router: {
      ...glm4Moe.experts!.router,
      groups: {
        count: or(8, 'n_group'),
        chosen: or(4, 'topk_group'),
        summed: 2,
      },
      scale: or(2.5, 'routed_scaling_factor'),
    },
  },
  variants: [{ when: flag('rope_interleave', true), change: { attention: deepseek2.attention } }],
};

/** Qwen 3's attention with the experts of DeepSeek V3; the last layers have a window (modeling_dots1.py). */
export const dots1: Wiring = vary(llama, {
  attention: {
    headNorm: qwen3.attention.headNorm!,
    window: {
      size: or(4096, 'sliding_window'),
      layers: { orElse: { fromLayer: or(62, 'max_window_layers') } },
    },
  },
  mlp: { ...llama.mlp, bias: false },
  experts: {
    ...glm4Moe.experts!,
    layers: layersFrom('first_k_dense_replace', 0),
    router: {
      ...glm4Moe.experts!.router,
      normalized: { when: flag('norm_topk_prob', false), added: 1e-20 },
    },
  },
});

/** Sinks, biases everywhere, every other layer with a window, clamped experts. */
export const gptOss: Wiring = vary(llama, {
  norm: { ...llama.norm, epsilon: or(1e-5, 'rms_norm_eps') },
  attention: {
    bias: flag('attention_bias', true),
    outputBias: flag('attention_bias', true),
    sinks: 'self_attn.sinks',
    position: { theta: 150_000 },
    window: { size: or(128, 'sliding_window'), layers: { orElse: 'even' } },
  },
  experts: {
    layers: everyLayer,
    count: at('num_local_experts', 'num_experts'),
    chosen: or(4, 'num_experts_per_tok', 'experts_per_token'),
    inner: at('intermediate_size'),
    activation: 'swiglu_clamped',
    weights: {
      up: 'mlp.experts.gate_up_proj',
      down: 'mlp.experts.down_proj',
      storage: 'in_out',
      biased: true,
    },
    router: { module: 'mlp.router', biased: true, by: 'softmax_of_chosen' },
  },
});

/** Layers that rotate see their own chunk of positions; the others see all, with queries that grow. */
export const llama4: Wiring = vary(llama, {
  sizes: { ...llama.sizes, inner: at('intermediate_size_mlp') },
  norm: { ...llama.norm, epsilon: or(1e-5, 'rms_norm_eps') },
  attention: {
    headNorm: {
      query: '',
      key: '',
      over: 'head',
      weightless: {
        when: flag('use_qk_norm', true),
        epsilon: or(1e-5, 'rms_norm_eps'),
      },
    },
    chunk: or(8192, 'attention_chunk_size'),
    temperature: {
      floor: or(8192, 'floor_scale'),
      size: or(0.1, 'attn_scale'),
      when: flag('attn_temperature_tuning', true),
    },
    position: {
      theta: 500_000,
      pairs: 'adjacent',
      skip: { list: 'no_rope_layers', interval: or(4, 'no_rope_layer_interval') },
    },
  },
  mlp: {
    ...llama.mlp,
    gate: 'feed_forward.gate_proj',
    up: 'feed_forward.up_proj',
    down: 'feed_forward.down_proj',
  } as Wiring['mlp'],
  experts: {
    layers: (config, layer) =>
      Array.isArray(valueAt(config, 'moe_layers'))
        ? numbersAt(config, 'moe_layers')!.includes(layer)
        : (layer + 1) % needSize(config, or(1, 'interleave_moe_layer_step')) === 0,
    count: at('num_local_experts'),
    chosen: at('num_experts_per_tok'),
    inner: at('intermediate_size'),
    weights: {
      up: 'feed_forward.experts.gate_up_proj',
      down: 'feed_forward.experts.down_proj',
      storage: 'in_out',
    },
    router: { module: 'feed_forward.router', by: 'sigmoid', onInput: true },
    shared: { modules: gated('feed_forward.shared_expert'), inner: at('intermediate_size') },
  },
});
