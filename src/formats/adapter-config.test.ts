import { readFileSync } from 'node:fs';
import { describe, expect, it, test } from 'vitest';
import { adapterSummary, parseAdapterConfig } from './adapter-config';
import { peftConfigText } from './peft-config';

const NAME = 'x/adapter_config.json';
function parse(more: object = {}) {
  return parseAdapterConfig(JSON.stringify({ peft_type: 'LORA', r: 8, lora_alpha: 16, ...more }), NAME);
}
function refusal(code: string, word: RegExp | string): unknown {
  return expect.objectContaining({
    code,
    message: expect.stringMatching(word) as string,
    hint: expect.stringMatching(/\w/) as string,
  });
}

test.each(['kitchen', 'harbour'])('the sample adapter %s', (name) => {
  const config = parseAdapterConfig(readFileSync(`public/samples/${name}/adapter_config.json`, 'utf8'), NAME);
  expect(config).toEqual({
    fileName: NAME,
    type: 'LORA',
    raw: expect.any(Map),
    targetParameters: [],
    baseModel: 'samples/base',
    taskType: 'CAUSAL_LM',
    rank: 8,
    alpha: 16,
    rsLora: false,
    dora: false,
    fanInFanOut: false,
    loraBias: false,
    bias: 'none',
    modulesToSave: [],
    rankPatterns: [],
    alphaPatterns: [],
    ensureWeightTying: false,
    unknown: [],
  });
  expect(adapterSummary(config)).toBe('LoRA, r 8, α 16');
});

test('everything that can be said', () => {
  const config = parse({
    lora_alpha: 4.5,
    use_rslora: true,
    use_dora: true,
    fan_in_fan_out: true,
    lora_bias: true,
    bias: 'lora_only',
    modules_to_save: ['model.norm', 'lm_head'],
    rank_pattern: { down_proj: 16 },
    alpha_pattern: { 'layers.2.*down_proj': 10.5 },
    revision: 'main',
    ensure_weight_tying: true,
  });
  expect(config).toMatchObject({
    alpha: 4.5,
    rsLora: true,
    dora: true,
    fanInFanOut: true,
    loraBias: true,
    bias: 'lora_only',
    revision: 'main',
    ensureWeightTying: true,
  });
  expect(config.rankPatterns[0]).toMatchObject({ pattern: 'down_proj', value: 16 });
  expect(config.alphaPatterns[0]).toMatchObject({ value: 10.5 });
  expect(adapterSummary(config)).toBe(
    'rsLoRA + DoRA, r 8, α 4.5, others for some modules, with model.norm, lm_head',
  );
});

test('an old config with few fields, and settings of training', () => {
  expect(parse({ init_lora_weights: false, merge_weights: false, task_type: null, bias: null }).bias).toBe(
    'none',
  );
  for (const init of [true, 'gaussian', 'eva', 'orthogonal'])
    expect(parse({ init_lora_weights: init }).rank).toBe(8);
  expect(
    parse({ loftq_config: { loftq_bits: 4 }, megatron_core: 'megatron.core', use_qalora: false }).rank,
  ).toBe(8);
});

test('fields that nobody knows are named', () => {
  expect(parse({ lora_scaling_trick: 2, lora_other: null, megatron_core: 'megatron.core' }).unknown).toEqual([
    'lora_scaling_trick',
  ]);
});

describe('refused by name', () => {
  test.each<[object, RegExp]>([
    [{ peft_type: 'PROMPT_TUNING' }, /PROMPT_TUNING adapter, which adds to the input/],
    [{ peft_type: 'PREFIX_TUNING' }, /PREFIX_TUNING/],
    [{ peft_type: 'XLORA' }, /XLORA adapter, which mixes adapters token by token/],
    [{ peft_type: 'POLY' }, /POLY adapter, which mixes adapters task by task/],
    [{ peft_type: 'OSF' }, /OSF adapter, which replaces the singular vectors/],
    [{ fine_tune_type: 'dora' }, /MLX adapter of the type dora/],
    [{ enable_lora: [true, false, true] }, /enable_lora/],
    [{ alora_invocation_tokens: [1, 2] }, /aLoRA/],
    [{ arrow_config: { top_k: 2 } }, /Arrow/],
    [{ use_bdlora: { nblocks: 2 } }, /BD-LoRA/],
    [{ kasa_config: { beta: 1 } }, /KaSA/],
    [{ monteclora_config: { n: 2 } }, /MontecLoRA/],
    [{ velora_config: { num_groups: 64 } }, /VeLoRA/],
    [{ layer_replication: [[0, 4]] }, /layer_replication/],
    [{ use_brandnew: true }, /use_brandnew/],
    [{ brandnew_config: { x: 1 } }, /brandnew_config/],
    [{ init_lora_weights: 'pissa' }, /pissa/],
    [{ init_lora_weights: 'pissa_niter_16' }, /pissa_niter_16/],
    [{ init_lora_weights: 'olora' }, /olora/],
    [{ init_lora_weights: 'corda' }, /corda/],
    [{ init_lora_weights: 'loftq' }, /loftq/],
    [{ init_lora_weights: 'lora_ga' }, /lora_ga/],
    [{ init_lora_weights: 'mica' }, /mica/],
  ])('%j', (more, word) => {
    expect(() => parse(more)).toThrow(refusal('AdapterUnsupported', word));
  });

  test.each<[object, RegExp]>([
    [{ peft_type: undefined }, /peft_type/],
    [{ r: undefined }, /“r” is missing/],
    [{ r: 0 }, /“r”/],
    [{ r: 8.5 }, /“r”/],
    [{ lora_alpha: null }, /“lora_alpha” is missing/],
    [{ lora_alpha: 'x' }, /“lora_alpha”/],
    [{ bias: 'some' }, /“bias” is “some”/],
    [{ modules_to_save: 'lm_head' }, /modules_to_save/],
    [{ rank_pattern: { a: 0 } }, /rank_pattern/],
    [{ alpha_pattern: { a: 'x' } }, /alpha_pattern/],
    [{ init_lora_weights: 3 }, /init_lora_weights/],
  ])('invalid: %j', (more, word) => {
    expect(() => parse(more)).toThrow(refusal('AdapterInvalid', word));
  });
});

test('patterns stand in the order of the file', () => {
  const text = `{"peft_type":"LORA","r":8,"lora_alpha":16,"rank_pattern":{"down_proj":2,"1":3,"mlp.down_proj":4}}`;
  const { rankPatterns } = parseAdapterConfig(text, NAME);
  expect(rankPatterns.map((p) => p.pattern)).toEqual(['down_proj', '1', 'mlp.down_proj']);
});

test('parameters of mlx_lm that are not known are named', () => {
  const mlx = (more: object) =>
    parseAdapterConfig(
      JSON.stringify({ fine_tune_type: 'lora', iters: 100, lora_parameters: { rank: 8, scale: 2, ...more } }),
      NAME,
    ).unknown;
  expect(mlx({ dropout: 0, keys: ['self_attn.q_proj'], use_dora: false })).toEqual([]);
  expect(mlx({ use_rslora: true })).toEqual(['lora_parameters.use_rslora']);
});

it('names modules by their ends only where PEFT finds nothing else by them', () => {
  const modules = [
    'visual.blocks.0.attn.qkv',
    'visual.blocks.1.attn.qkv',
    'visual.merger.mlp.0',
    'model.layers.0.self_attn.q_proj',
  ];
  const config = JSON.parse(
    peftConfigText({
      base: 'b',
      modules: modules.map((module) => ({ module, rank: 2 })),
      all: [...modules, 'model.layers.1.self_attn.q_proj'],
      saved: [],
      loraBias: false,
      fanInFanOut: false,
      tied: false,
      task: null,
    }),
  );
  // `0` would be a block of the tower, too, and `q_proj` a module that has no factors
  expect(config.target_modules).toEqual(['qkv', 'visual.merger.mlp.0', 'model.layers.0.self_attn.q_proj']);
});
