import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { adapterSummary, parseAdapterConfig } from './adapter-config';
import { matchModule, modulePatterns } from './module-pattern';

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
    rankPatterns: expect.objectContaining({ entries: [] }),
    alphaPatterns: expect.objectContaining({ entries: [] }),
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
  expect(config.rankPatterns.entries[0]).toMatchObject({ pattern: 'down_proj', value: 16 });
  expect(config.alphaPatterns.entries[0]).toMatchObject({ value: 10.5 });
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
    [{ rank_pattern: { '(?=a)a': 4 } }, /looks around/],
    [{ rank_pattern: { '(a': 4 } }, /not closed/],
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

describe('module patterns', () => {
  /** PEFT: re.match(rf"(.*\.)?({key})$", path), checked in Python for each of these. */
  test.each([
    ['q_proj', 'model.layers.0.self_attn.q_proj', true],
    ['q_proj', 'q_proj', true],
    ['q_proj', 'model.layers.0.self_attn.eq_proj', false],
    ['proj', 'model.q_proj', false],
    ['self_attn.q_proj', 'model.layers.0.self_attn.q_proj', true],
    ['model.layers.2.mlp.down_proj', 'model.layers.2.mlp.down_proj', true],
    ['model.layers.2.mlp.down_proj', 'model.layers.12.mlp.down_proj', false],
    ['layers.2.mlp.down_proj', 'model.layers.2.mlp.down_proj', true],
    ['^model.layers.0.q_proj', 'model.layers.0.q_proj', true],
    ['^layers.0.q_proj', 'model.layers.0.q_proj', false],
    ['(q|k)_proj', 'model.k_proj', true],
    ['layers\\.[01]\\..*q_proj', 'model.layers.1.self_attn.q_proj', true],
    ['layers\\.[01]\\..*q_proj', 'model.layers.2.self_attn.q_proj', false],
    ['q_proj|v_proj', 'model.v_proj', true],
    ['q_proj', 'model.q_proj.inner', false],
  ])('%s on %s: %s', (pattern, path, matches) => {
    expect(matchModule(modulePatterns([{ pattern, value: 1 }], NAME), path, 0)).toBe(matches ? 1 : 0);
  });

  test('the first that matches decides, in the order of the file', () => {
    const text = `{"peft_type":"LORA","r":8,"lora_alpha":16,"rank_pattern":{"down_proj":2,"1":3,"mlp.down_proj":4}}`;
    const { rankPatterns, rank } = parseAdapterConfig(text, NAME);
    expect(rankPatterns.entries.map((p) => p.pattern)).toEqual(['down_proj', '1', 'mlp.down_proj']);
    expect(matchModule(rankPatterns, 'layers.1.mlp.down_proj', rank)).toBe(2);
    expect(matchModule(rankPatterns, 'layers.1', rank)).toBe(3);
    expect(matchModule(rankPatterns, 'layers.2', rank)).toBe(8);
  });

  test.each([
    ['(a)\\1', 'refers back'],
    ['(?=a)b', 'looks around'],
    ['(?<!a)b', 'looks around'],
    ['\\bq_proj', 'word boundaries'],
    ['(?i)Q_PROJ', 'not supported'],
    ['a*+', 'possessive'],
    ['((a{40}){40}){40}', 'too large'],
    ['(((a{,3189}|b)*c)*)*', 'too large'],
    [`(${'x'.repeat(300)})`, 'over-long'],
    ['a**', 'repeats a repeat'],
    ['[z-a]', 'backwards'],
    ['(a', 'not closed'],
    ['a)', 'not open'],
    ['[a', 'not closed'],
    ['\\', 'backslash'],
  ])('R58: the pattern %s is refused by name: %s', (pattern, why) => {
    expect(() => modulePatterns([{ pattern, value: 1 }], NAME)).toThrow(
      refusal('AdapterUnsupported', new RegExp(`module pattern.* ${why}`)),
    );
  });

  test.each([
    '(a+)+b',
    '(a|a)*b',
    '(a*)*c',
    '.*a.*b.*c.*d',
    '(a|.|a.)(.|a|a.)(a|.)[a.]*c',
    `${'a?'.repeat(60)}c`,
  ])('R58: a pattern on which a backtracking matcher hangs is matched: %s', (pattern) => {
    const patterns = modulePatterns([{ pattern, value: 1 }], NAME);
    const begin = process.cpuUsage();
    for (let i = 0; i < 100; i++) expect(patterns.find(`${'a.'.repeat(149)}a${i}`)).toBeUndefined();
    // microseconds of the processor: what else the machine does is not counted
    expect(process.cpuUsage(begin).user).toBeLessThan(2_000_000);
  });

  test.each([
    '(a{,900}|b)*',
    '((((a{,900})*)*)*)*',
    '(((){2000}){2000}){2000}',
    `${'('.repeat(140)}a?${')'.repeat(140)}`,
  ])('R58: repeats of nothing and repeats in repeats fill neither stack nor time: %s', (pattern) => {
    const patterns = modulePatterns([{ pattern, value: 1 }], NAME);
    expect(patterns.find('model.layers.0.q_proj')).toBeUndefined();
    expect(modulePatterns([{ pattern: `${pattern}q`, value: 1 }], NAME).find('layers.q')).toBe(1);
  });

  test.each([
    ['ways that take no character', `(${'^|'.repeat(90)}^){10}b`],
    ['the parts of a class', `[${'a'.repeat(290)}]*b`],
  ])('R58: %s are steps, too, of which a file has only so many', (_, pattern) => {
    const patterns = modulePatterns([{ pattern, value: 1 }], NAME);
    const paths = Array.from({ length: 2000 }, () => 'z.'.repeat(150));
    expect(() => paths.map((path) => patterns.find(path))).toThrow(refusal('AdapterUnsupported', /too long/));
  });

  test('R58: as many plain patterns as modules are looked up; as many expressions are refused', () => {
    const paths = Array.from({ length: 30_000 }, (_, i) => `model.layers.${i % 48}.mlp.experts.${i}.up_proj`);
    const plain = modulePatterns(
      paths.map((pattern, value) => ({ pattern, value })),
      NAME,
    );
    const begin = process.cpuUsage();
    expect(paths.every((path, i) => plain.find(path) === i)).toBe(true);
    expect(process.cpuUsage(begin).user).toBeLessThan(4_000_000);
    const slow = modulePatterns(
      paths.slice(0, 3000).map((path, value) => ({ pattern: `${path}(x|y)`, value })),
      NAME,
    );
    expect(() => paths.map((path) => slow.find(path))).toThrow(refusal('AdapterUnsupported', /too long/));
  });

  test('agrees with a backtracking matcher, whatever the pattern', () => {
    const piece = fc.constantFrom('a', 'b', '.', '\\.', '[ab]', '[^a]', '\\w', '^', '$', 'a|b', '');
    const sign = fc.constantFrom('', '', '*', '+', '?', '{2}', '{1,2}', '*?', '{0,}');
    const part = fc
      .tuple(piece, sign)
      .map(([it, times]) => (it === '' || it === '^' || it === '$' ? it : `(?:${it})${times}`));
    const pattern = fc.array(part, { minLength: 1, maxLength: 5 }).map((parts) => parts.join(''));
    const path = fc
      .array(fc.constantFrom('a', 'b', '.', '_'), { maxLength: 8 })
      .map((chars) => chars.join(''));
    fc.assert(
      fc.property(
        fc.array(
          fc.oneof(
            pattern,
            path.filter((p) => p !== ''),
          ),
          { maxLength: 4 },
        ),
        path,
        (sources, text) => {
          const wanted = sources.findIndex((source) => new RegExp(`^(?:.*\\.)?(?:${source})$`).test(text));
          const patterns = modulePatterns(
            sources.map((source, value) => ({ pattern: source, value })),
            NAME,
          );
          expect(patterns.find(text)).toBe(wanted < 0 ? undefined : wanted);
        },
      ),
      { numRuns: 3000 },
    );
  });
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
