import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { goldenFolder } from '../../e2e/goldens';
import { AmalgamError } from '../errors';
import { parseModelConfig } from '../formats/model-config';
import { partOf } from './architecture';
import { claimTensors, expectedTensors, linearSites } from './claim';
import { resolveArchitecture } from './resolution';
import { alibiSlopes, inverseFrequencies } from './rope';

const GOLDEN = goldenFolder('forward');
const json = (name: string) =>
  JSON.parse(readFileSync(`${GOLDEN}/${name}/config.json`, 'utf8')) as Record<string, unknown>;
const resolve = (config: Record<string, unknown>) =>
  resolveArchitecture(parseModelConfig(JSON.stringify(config), 'm/config.json'));
const codeOf = (work: () => unknown) => {
  try {
    work();
  } catch (e) {
    if (e instanceof AmalgamError) return [e.code, e.message];
    throw e;
  }
  return ['none', ''];
};

describe('resolveArchitecture', () => {
  const llama = json('llama');

  it('bounds the steps of Nemotron-H as its class does, by time_step_min whatever time_step_limit says', () => {
    const nemotron = {
      model_type: 'nemotron_h',
      hidden_size: 32,
      vocab_size: 144,
      layers_block_type: ['linear_attention'],
      num_attention_heads: 4,
      mamba_num_heads: 4,
      mamba_head_dim: 16,
      ssm_state_size: 8,
      time_step_limit: [0, { __float__: 'Infinity' }],
    };
    const low = (config: Record<string, unknown>) => partOf(resolve(config).blocks[0]!, 'recurrence')?.low;
    expect(low(nemotron)).toBe(0.001);
    expect(low({ ...nemotron, time_step_min: 0.01 })).toBe(0.01);
    expect(low({ ...nemotron, mamba_dt_min: 0.02, time_step_min: 0.01 })).toBe(0.02);
  });

  it('refuses what no wiring covers, by name', () => {
    for (const [change, text] of [
      [{ model_type: 'rwkv' }, 'rwkv'],
      [{ model_type: 'qwen' }, 'qwen'],
      [{ model_type: 'constructor' }, 'constructor'],
      [{ model_type: undefined }, 'model_type'],
      [{ hidden_act: 'laplace' }, 'laplace'],
      [{ rope_parameters: { rope_theta: 1e4, rope_type: 'mystery' } }, 'mystery'],
      [{ quantization_config: { quant_method: 'gptq' } }, 'quantized'],
    ] as const) {
      const [code, message] = codeOf(() => resolve({ ...llama, ...change }));
      expect(code).toBe('ArchitectureUnsupported');
      expect(message).toContain(text);
    }
    expect(codeOf(() => resolve({ ...json('stablelm'), use_parallel_residual: true }))[0]).toBe(
      'ArchitectureUnsupported',
    );
    expect(
      codeOf(() => resolve({ ...json('gemma2'), layer_types: ['sliding_attention', 'chunked', 'x'] }))[0],
    ).toBe('ArchitectureUnsupported');
  });

  it('says why encoders, encoder–decoders and towers of images cannot be measured', () => {
    for (const [model_type, why] of [
      ['bert', /an encoder fills in masked words/],
      ['xlm-roberta', /an encoder fills/],
      ['modernbert', /an encoder fills/],
      ['whisper', /an encoder–decoder writes in answer/],
      ['t5', /an encoder–decoder/],
      ['clip', /reads images or sound/],
      ['llama_like', /“llama_like” cannot be run\.$/],
    ] as const) {
      expect(codeOf(() => resolve({ ...llama, model_type }))).toEqual([
        'ArchitectureUnsupported',
        expect.stringMatching(why),
      ]);
    }
  });

  it('refuses values under which the class of transformers computes what no wiring does', () => {
    const forward2 = (name: string) =>
      JSON.parse(readFileSync(`${goldenFolder('forward2')}/${name}/config.json`, 'utf8')) as Record<
        string,
        unknown
      >;
    for (const [config, change] of [
      [json('gemma3'), { use_bidirectional_attention: true }],
      [forward2('mamba'), { hidden_act: 'gelu' }],
      [forward2('mamba2'), { hidden_act: 'relu' }],
      [forward2('qwen3_5_text'), { hidden_act: 'gelu' }],
      [forward2('recurrent_gemma'), { hidden_activation: 'silu' }],
      [forward2('gemma4_moe'), { hidden_activation: 'silu' }],
    ] as const) {
      expect(() => resolve(config)).not.toThrow();
      expect(codeOf(() => resolve({ ...config, ...change }))[0]).toBe('ArchitectureUnsupported');
    }
  });

  it('knows which linear maps have biases, and refuses one that a factor of the input passes over', () => {
    const falcon = {
      ...llama,
      model_type: 'falcon_h1',
      mamba_d_ssm: 32,
      mamba_n_heads: 4,
      mamba_d_head: 8,
      mamba_d_state: 8,
      mamba_n_groups: 1,
      mamba_d_conv: 4,
    };
    const biased = (config: Record<string, unknown>) =>
      expectedTensors(resolve(config))
        .map(({ name }) => /\.0\.(.*)\.bias$/.exec(name)?.[1])
        .filter((name) => name !== undefined && !name.includes('conv1d'));
    expect(biased(falcon)).toEqual([]);
    expect(biased({ ...falcon, projectors_bias: true })).toEqual(['mamba.out_proj']);
    expect(biased({ ...falcon, mamba_proj_bias: true })).toEqual(['mamba.in_proj']);
    expect(biased({ ...falcon, attention_bias: true, key_multiplier: 0.5 })).toEqual(
      ['q', 'k', 'v', 'o'].map((name) => `self_attn.${name}_proj`),
    );
    for (const change of [
      { attention_bias: true, attention_in_multiplier: 0.5 },
      { mamba_proj_bias: true, ssm_in_multiplier: 0.5 },
    ]) {
      expect(codeOf(() => resolve({ ...falcon, ...change }))).toEqual([
        'ArchitectureUnsupported',
        expect.stringMatching(/_bias = true cannot be run beside a factor of 0\.5/),
      ]);
    }
  });

  it('chooses experts of DeepSeek V2 within groups only where topk_method says so', () => {
    const deepseek = {
      ...llama,
      model_type: 'deepseek_v2',
      kv_lora_rank: 8,
      qk_nope_head_dim: 8,
      qk_rope_head_dim: 4,
      v_head_dim: 8,
      n_routed_experts: 4,
      num_experts_per_tok: 2,
      moe_intermediate_size: 8,
      n_shared_experts: 1,
      n_group: 2,
      topk_group: 1,
      num_key_value_heads: llama.num_attention_heads,
    };
    const groups = (topk_method: string) =>
      partOf(resolve({ ...deepseek, topk_method }).blocks[0]!, 'experts')?.router.groups;
    expect(groups('greedy')).toBeUndefined();
    expect(groups('group_limited_greedy')).toEqual({ count: 2, chosen: 1, summed: 1 });
  });

  it('names the field that is missing or wrong', () => {
    for (const [change, field] of [
      [{ hidden_size: undefined }, 'hidden_size'],
      [{ num_hidden_layers: null }, 'num_hidden_layers'],
      [{ num_hidden_layers: 1e9 }, 'num_hidden_layers'],
      [{ num_attention_heads: '6' }, 'num_attention_heads'],
      [{ num_key_value_heads: 4 }, 'num_key_value_heads'],
      [{ num_attention_heads: 7, num_key_value_heads: 7, head_dim: null }, 'num_attention_heads'],
      [{ head_dim: 7 }, 'head_dim'],
      [{ vocab_size: 0 }, 'vocab_size'],
      [{ rms_norm_eps: 'tiny' }, 'rms_norm_eps'],
      [{ attention_bias: 'no' }, 'attention_bias'],
      [{ hidden_act: 3 }, 'hidden_act'],
      [{ tie_word_embeddings: 1 }, 'tie_word_embeddings'],
      [{ rope_parameters: { rope_theta: -1 } }, 'rope_theta'],
      [{ rope_parameters: { rope_theta: 1e4, rope_type: 'linear' } }, 'factor'],
      [
        {
          rope_parameters: {
            rope_type: 'llama3',
            factor: 8,
            low_freq_factor: 4,
            high_freq_factor: 1,
            original_max_position_embeddings: 64,
          },
        },
        'low_freq_factor',
      ],
    ] as const) {
      const [code, message] = codeOf(() => resolve({ ...llama, ...change }));
      expect([code, message]).toEqual(['ConfigInvalid', expect.stringContaining(field)]);
    }
    expect(codeOf(() => resolve({ ...json('gemma2'), layer_types: ['full_attention'] }))[0]).toBe(
      'ConfigInvalid',
    );
    expect(codeOf(() => resolve({ ...json('smollm3'), no_rope_layers: [1, 2, 0] }))[0]).toBe('ConfigInvalid');
  });

  it('never throws anything but a named error, whatever a field holds', () => {
    for (const name of [
      'llama',
      'gemma3',
      'gpt2',
      'bloom',
      'opt',
      'phi3',
      'smollm3',
      'granite',
      'gpt_neox',
    ]) {
      const config = json(name);
      for (const field of Object.keys(config)) {
        for (const value of [null, -1, 0.5, 1e300, 'x', [], {}, true]) {
          expect(['none', 'ConfigInvalid', 'ArchitectureUnsupported']).toContain(
            codeOf(() => resolve({ ...config, [field]: value }))[0],
          );
        }
      }
    }
  });

  it('derives layer kinds where a config has no list', () => {
    const windows = (config: Record<string, unknown>) =>
      resolve(config).blocks.map((b) => partOf(b, 'attention')!.window);
    const size = { num_hidden_layers: 4, layer_types: undefined, sliding_window: 9 };
    expect(windows({ ...json('gemma2'), ...size })).toEqual([9, undefined, 9, undefined]);
    expect(windows({ ...json('gemma3'), ...size, sliding_window_pattern: 3 })).toEqual([9, 9, undefined, 9]);
    expect(windows({ ...json('qwen2'), ...size, use_sliding_window: true, max_window_layers: 3 })).toEqual([
      undefined,
      undefined,
      undefined,
      9,
    ]);
    expect(windows({ ...json('mistral'), sliding_window: null })).toEqual([undefined, undefined]);
    const smol = { ...json('smollm3'), ...size, no_rope_layers: undefined, use_sliding_window: true };
    expect(windows(smol)).toEqual([undefined, 9, undefined, 9]);
    expect(resolve(smol).blocks.map((b) => partOf(b, 'attention')!.rope !== undefined)).toEqual([
      true,
      false,
      true,
      false,
    ]);
  });
});

describe('claimTensors', () => {
  const llama = resolve(json('llama'));
  const stored = () => new Map(expectedTensors(llama).map(({ name, shape }) => [name, { shape }]));

  it('claims every tensor once, with or without prefix', () => {
    const bare = new Map([...stored()].map(([name, t]) => [name.replace(/^model\./, ''), t]));
    const claimed = claimTensors(llama, bare);
    expect(claimed.get('model.layers.1.mlp.up_proj.weight')).toBe('layers.1.mlp.up_proj.weight');
    expect(new Set(claimed.values())).toEqual(new Set(bare.keys()));
  });

  it('ignores buffers and the stored head of a tied model', () => {
    const tied = resolve({ ...json('llama'), tie_word_embeddings: true });
    const tensors = stored().set('model.layers.0.self_attn.rotary_emb.inv_freq', { shape: [4] });
    expect(claimTensors(tied, tensors).has('lm_head.weight')).toBe(false);
    expect(codeOf(() => claimTensors(llama, tensors))[0]).toBe('none');
  });

  it('names what is missing, misshapen or unknown', () => {
    const missing = stored();
    missing.delete('model.norm.weight');
    expect(codeOf(() => claimTensors(llama, missing))).toEqual([
      'TensorMissing',
      expect.stringContaining('model.norm.weight'),
    ]);
    const wrong = stored().set('model.norm.weight', { shape: [47] });
    expect(codeOf(() => claimTensors(llama, wrong))).toEqual([
      'ShapeMismatch',
      expect.stringContaining('[47]'),
    ]);
    const extra = stored().set('model.layers.0.self_attn.q_proj.bias', { shape: [48] });
    expect(codeOf(() => claimTensors(llama, extra))).toEqual([
      'ArchitectureUnsupported',
      expect.stringContaining('q_proj.bias'),
    ]);
  });

  it('groups the linear layers of a block by the input they share', () => {
    const sites = linearSites(llama.blocks[0]!);
    expect(sites.map((s) => [s.site, s.inputs, s.linears.length])).toEqual([
      ['attention_in', 48, 3],
      ['attention_out', 48, 1],
      ['mlp_in', 48, 2],
      ['mlp_out', 56, 1],
    ]);
  });
});

describe('positions', () => {
  it('llama3 scaling divides long wavelengths, keeps short ones and blends between', () => {
    const scaling = { type: 'llama3', factor: 8, low: 1, high: 4, original: 8192 } as const;
    const plain = inverseFrequencies({ theta: 500_000, dims: 128, scaling: { type: 'default' } });
    const scaled = inverseFrequencies({ theta: 500_000, dims: 128, scaling });
    const ratio = [...scaled].map((v, i) => v / plain[i]!);
    expect(ratio[0]).toBe(1);
    expect(ratio.at(-1)).toBeCloseTo(1 / 8, 14);
    expect(ratio.filter((r) => r > 0.126 && r < 0.999).length).toBeGreaterThan(3);
    expect(ratio.toSorted((a, b) => b - a)).toEqual(ratio);
  });

  it('ALiBi slopes of 8 and of 10 heads', () => {
    expect(alibiSlopes(8)).toEqual([1, 2, 3, 4, 5, 6, 7, 8].map((k) => 2 ** -k));
    // the two extra heads take the odd powers of 2^(-1/2)
    expect(alibiSlopes(10).slice(8)).toEqual([2 ** -0.5, (2 ** -0.5) ** 3]);
  });
});
