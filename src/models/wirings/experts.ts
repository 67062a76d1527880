/**
 * Wirings with experts (transformers: modeling_mixtral.py, modeling_qwen2_moe.py, modeling_qwen3_moe.py, modeling_olmoe.py,
 * modeling_granitemoe.py, modeling_phimoe.py, modeling_ernie4_5_moe.py, modeling_glm4_moe.py, modeling_gpt_oss.py,
 * modeling_llama4.py, modeling_deepseek_v2.py, modeling_dots1.py). Defaults are those of the configuration classes.
 */
import { needNumber, needSize, valueAt } from '../config-reader';
import { everyLayer, layersFrom, numbersAt } from '../resolved-experts';
import type { ExpertsWiring, LayerRule, Wiring } from '../wiring';
import { granite, llama, mistral, olmo2, partialRope, qwen2, qwen3 } from './llama';
import { ernie, latent } from './relatives';

const field = (...fields: string[]) => ({ fields });
const named = (module: string, gate: string, up: string, down: string): ExpertsWiring['weights'] => ({
  each: (i) => [`${module}.${i}.${gate}`, `${module}.${i}.${up}`, `${module}.${i}.${down}`],
});
const projections = named('mlp.experts', 'gate_proj', 'up_proj', 'down_proj');
const w123 = named('block_sparse_moe.experts', 'w1', 'w3', 'w2');
const gated = (module: string) =>
  [`${module}.gate_proj`, `${module}.up_proj`, `${module}.down_proj`] as const;

/** Qwen: every `decoder_sparse_step`-th layer, but for those of a list. */
const sparseLayers: LayerRule = (config, layer) =>
  (layer + 1) % needSize(config, { fields: ['decoder_sparse_step'], orElse: 1 }) === 0 &&
  !numbersAt(config, 'mlp_only_layers')?.includes(layer);

export const mixtralExperts: ExpertsWiring = {
  layers: everyLayer,
  count: field('num_local_experts', 'num_experts'),
  chosen: field('num_experts_per_tok'),
  inner: field('intermediate_size'),
  weights: w123,
  router: { module: 'block_sparse_moe.gate', by: 'softmax', normalized: { when: true } },
};

export const mixtral: Wiring = {
  ...mistral,
  norm: { ...llama.norm, epsilon: { fields: ['rms_norm_eps'], orElse: 1e-5 } },
  attention: {
    ...mistral.attention,
    position: { theta: 1_000_000 },
    window: { size: { fields: ['sliding_window'] }, layers: 'all' },
  },
  experts: mixtralExperts,
};

export const qwenExperts: ExpertsWiring = {
  layers: sparseLayers,
  count: field('num_experts', 'num_local_experts'),
  chosen: field('num_experts_per_tok'),
  inner: field('moe_intermediate_size'),
  weights: projections,
  router: {
    module: 'mlp.gate',
    by: 'softmax',
    normalized: { when: { field: 'norm_topk_prob', orElse: false } },
  },
};

const sharedExpert: NonNullable<ExpertsWiring['shared']> = {
  modules: gated('mlp.shared_expert'),
  inner: field('shared_expert_intermediate_size'),
  factor: 'mlp.shared_expert_gate',
};

export const qwen2Moe: Wiring = { ...qwen2, experts: { ...qwenExperts, shared: sharedExpert } };
/** Shared expert as Qwen 3 Next has it, whose shares sum to 1. */
export const qwenNextExperts: ExpertsWiring = {
  ...qwenExperts,
  router: { ...qwenExperts.router, normalized: { when: { field: 'norm_topk_prob', orElse: true } } },
  shared: sharedExpert,
};
export const qwen3Moe: Wiring = { ...qwen3, experts: qwenExperts };

export const olmoe: Wiring = {
  ...llama,
  norm: { ...llama.norm, epsilon: { fields: ['rms_norm_eps'], orElse: 1e-5 } },
  attention: { ...llama.attention, headNorm: olmo2.attention.headNorm! },
  experts: { ...qwenExperts, layers: everyLayer, inner: field('intermediate_size') },
  fixed: [{ field: 'clip_qkv', value: null, otherwise: 'clipped queries, keys and values' }],
};

export const graniteExperts: ExpertsWiring = {
  layers: (config) => needNumber(config, { fields: ['num_local_experts'], orElse: 0 }) > 0,
  count: field('num_local_experts'),
  chosen: field('num_experts_per_tok'),
  inner: field('intermediate_size'),
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
  norm: { kind: 'layer', bias: true, epsilon: { fields: ['rms_norm_eps'], orElse: 1e-5 } },
  attention: { ...llama.attention, position: { theta: 1_000_000 }, window: mixtral.attention.window! },
  experts: {
    ...mixtralExperts,
    router: {
      module: 'block_sparse_moe.gate',
      by: 'sparsemixer',
      margin: { fields: ['router_jitter_noise'], orElse: 0.01 },
    },
  },
  fixed: [{ field: 'num_experts_per_tok', value: 2, otherwise: 'sparsemixer chooses two' }],
  variants: [{ when: { field: 'lm_head_bias', orElse: false }, change: { head: { bias: 'lm_head.bias' } } }],
};

export const ernieMoe: Wiring = {
  ...ernie,
  experts: {
    layers: (config, layer) =>
      (layer + 1) % needSize(config, { fields: ['moe_layer_interval'], orElse: 1 }) === 0 &&
      layer >= needNumber(config, { fields: ['moe_layer_start_index'], orElse: 1 }) &&
      (needNumber(config, { fields: ['moe_layer_end_index'], orElse: -1 }) < 0 ||
        layer <= needNumber(config, field('moe_layer_end_index'))),
    count: field('moe_num_experts'),
    chosen: field('moe_k'),
    inner: field('moe_intermediate_size'),
    weights: projections,
    bias: { field: 'use_bias', orElse: false },
    router: {
      module: 'mlp.gate',
      by: 'softmax',
      correction: { name: 'mlp.moe_statics.e_score_correction_bias', leadingShape: [1] },
      normalized: { when: true, floor: { fields: ['moe_norm_min'], orElse: 1e-12 } },
    },
    shared: {
      modules: gated('mlp.shared_experts'),
      inner: field('moe_intermediate_size'),
      widthFactor: { fields: ['moe_num_shared_experts'], orElse: 0 },
    },
  },
};

const sharedExperts: NonNullable<ExpertsWiring['shared']> = {
  modules: gated('mlp.shared_experts'),
  inner: field('moe_intermediate_size'),
  widthFactor: { fields: ['n_shared_experts'], orElse: 0 },
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
    count: field('n_routed_experts'),
    chosen: field('num_experts_per_tok'),
    inner: field('moe_intermediate_size'),
    weights: projections,
    router: {
      module: 'mlp.gate',
      by: 'sigmoid',
      correction: { name: 'mlp.gate.e_score_correction_bias', leadingShape: [] },
      groups: { count: field('n_group'), chosen: field('topk_group'), summed: 2 },
      normalized: { when: { field: 'norm_topk_prob', orElse: true }, added: 1e-20 },
      scale: { fields: ['routed_scaling_factor'], orElse: 1 },
    },
    shared: sharedExperts,
  },
  variants: [
    {
      when: { field: 'use_qk_norm', orElse: false },
      change: {
        attention: {
          ...glmAttention,
          headNorm: { query: 'self_attn.q_norm', key: 'self_attn.k_norm', over: 'head' },
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
    count: field('n_routed_experts'),
    chosen: field('num_experts_per_tok'),
    inner: field('moe_intermediate_size'),
    weights: projections,
    router: {
      module: 'mlp.gate',
      by: 'softmax',
      scale: { fields: ['routed_scaling_factor'], orElse: 1 },
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
            groups: { count: field('n_group'), chosen: field('topk_group'), summed: 1 },
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
        count: { fields: ['n_group'], orElse: 8 },
        chosen: { fields: ['topk_group'], orElse: 4 },
        summed: 2,
      },
      scale: { fields: ['routed_scaling_factor'], orElse: 2.5 },
    },
  },
  variants: [
    { when: { field: 'rope_interleave', orElse: true }, change: { attention: deepseek2.attention } },
  ],
};

/** Qwen 3's attention with the experts of DeepSeek V3; the last layers have a window (modeling_dots1.py). */
export const dots1: Wiring = {
  ...llama,
  attention: {
    ...llama.attention,
    headNorm: qwen3.attention.headNorm!,
    window: {
      size: { fields: ['sliding_window'], orElse: 4096 },
      layers: { orElse: { fromLayer: { fields: ['max_window_layers'], orElse: 62 } } },
    },
  },
  mlp: { ...llama.mlp, bias: false },
  experts: {
    ...glm4Moe.experts!,
    layers: layersFrom('first_k_dense_replace', 0),
    router: {
      ...glm4Moe.experts!.router,
      normalized: { when: { field: 'norm_topk_prob', orElse: false }, added: 1e-20 },
    },
  },
};

/** Sinks, biases everywhere, every other layer with a window, clamped experts. */
export const gptOss: Wiring = {
  ...llama,
  norm: { ...llama.norm, epsilon: { fields: ['rms_norm_eps'], orElse: 1e-5 } },
  attention: {
    ...llama.attention,
    bias: { field: 'attention_bias', orElse: true },
    outputBias: { field: 'attention_bias', orElse: true },
    sinks: 'self_attn.sinks',
    position: { theta: 150_000 },
    window: { size: { fields: ['sliding_window'], orElse: 128 }, layers: { orElse: 'even' } },
  },
  experts: {
    layers: everyLayer,
    count: field('num_local_experts', 'num_experts'),
    chosen: field('num_experts_per_tok', 'experts_per_token'),
    inner: field('intermediate_size'),
    activation: 'swiglu_clamped',
    weights: {
      up: 'mlp.experts.gate_up_proj',
      down: 'mlp.experts.down_proj',
      storage: 'in_out',
      biased: true,
    },
    router: { module: 'mlp.router', biased: true, by: 'softmax_of_chosen' },
  },
};

/** Layers that rotate see their own chunk of positions; the others see all, with queries that grow. */
export const llama4: Wiring = {
  ...llama,
  sizes: { ...llama.sizes, inner: field('intermediate_size_mlp') },
  norm: { ...llama.norm, epsilon: { fields: ['rms_norm_eps'], orElse: 1e-5 } },
  attention: {
    ...llama.attention,
    headNorm: {
      query: '',
      key: '',
      over: 'head',
      weightless: {
        when: { field: 'use_qk_norm', orElse: true },
        epsilon: { fields: ['rms_norm_eps'], orElse: 1e-5 },
      },
    },
    chunk: { fields: ['attention_chunk_size'], orElse: 8192 },
    temperature: {
      floor: { fields: ['floor_scale'], orElse: 8192 },
      size: { fields: ['attn_scale'], orElse: 0.1 },
      when: { field: 'attn_temperature_tuning', orElse: true },
    },
    position: {
      theta: 500_000,
      pairs: 'adjacent',
      skip: { list: 'no_rope_layers', interval: { fields: ['no_rope_layer_interval'], orElse: 4 } },
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
        : (layer + 1) % needSize(config, { fields: ['interleave_moe_layer_step'], orElse: 1 }) === 0,
    count: field('num_local_experts'),
    chosen: field('num_experts_per_tok'),
    inner: field('intermediate_size'),
    weights: {
      up: 'feed_forward.experts.gate_up_proj',
      down: 'feed_forward.experts.down_proj',
      storage: 'in_out',
    },
    router: { module: 'feed_forward.router', by: 'sigmoid', onInput: true },
    shared: { modules: gated('feed_forward.shared_expert'), inner: field('intermediate_size') },
  },
};
