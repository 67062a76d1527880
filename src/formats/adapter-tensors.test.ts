import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { parseAdapterConfig } from './adapter-config';
import { modulePaths, readAdapterTensors } from './adapter-tensors';
import type { Dtype } from './dtype';
import { headerLength, parseSafetensorsHeader, type StoredTensor } from './safetensors-header';

const P = 'base_model.model.';
const Q = 'model.layers.0.self_attn.q_proj';

function config(more: object = {}) {
  return parseAdapterConfig(
    JSON.stringify({ peft_type: 'LORA', r: 4, lora_alpha: 8, ...more }),
    'x/adapter_config.json',
  );
}
function stored(shapes: Record<string, number[]>, dtype: Dtype = 'F32'): Map<string, StoredTensor> {
  return new Map(
    Object.entries(shapes).map(([name, shape]) => [name, { name, dtype, shape, begin: 0, end: 0 }]),
  );
}
function read(shapes: Record<string, number[]>, more: object = {}) {
  return readAdapterTensors(config(more), stored(shapes));
}
/** A sound pair of rank 4 from 16 inputs to 32 outputs. */
function pair(module = Q, rank = 4) {
  return { [`${P}${module}.lora_A.weight`]: [rank, 16], [`${P}${module}.lora_B.weight`]: [32, rank] };
}
function refusal(code: string, word: RegExp | string): unknown {
  return expect.objectContaining({ code, message: expect.stringMatching(word) as string });
}

test('the sample adapter', () => {
  const folder = 'public/samples/kitchen';
  const bytes = readFileSync(`${folder}/adapter_model.safetensors`);
  const length = headerLength(bytes.subarray(0, 8), bytes.length);
  const { tensors } = parseSafetensorsHeader(bytes.subarray(8, 8 + length), bytes.length, 'kitchen');
  const adapter = readAdapterTensors(
    parseAdapterConfig(readFileSync(`${folder}/adapter_config.json`, 'utf8'), 'kitchen'),
    tensors,
  );
  expect(adapter.lowRank.size).toBe(42);
  expect(adapter.lowRank.get('model.layers.5.mlp.down_proj')).toEqual({
    a: tensors.get('base_model.model.model.layers.5.mlp.down_proj.lora_A.weight'),
    b: tensors.get('base_model.model.model.layers.5.mlp.down_proj.lora_B.weight'),
    kind: 'linear',
    rank: 8,
    scale: 2,
  });
  expect(adapter.replaces.size).toBe(0);
  expect(adapter.ignored).toEqual([]);
});

describe('key forms', () => {
  test.each([
    ['as PEFT saves them', P, '.lora_A.weight', '.lora_B.weight'],
    ['with the adapter’s name', P, '.lora_A.default.weight', '.lora_B.default.weight'],
    ['without prefix', '', '.lora_A.weight', '.lora_B.weight'],
  ])('%s', (_, prefix, a, b) => {
    const { lowRank } = read({ [`${prefix}${Q}${a}`]: [4, 16], [`${prefix}${Q}${b}`]: [32, 4] });
    expect([...lowRank.keys()]).toEqual([Q]);
    expect(lowRank.get(Q)).toMatchObject({ kind: 'linear', rank: 4, scale: 2 });
  });

  test.each(['', '.default'])('embeddings%s', (name) => {
    const { lowRank, origins } = read({
      [`${P}model.embed_tokens.lora_embedding_A${name}`]: [4, 100],
      [`${P}model.embed_tokens.lora_embedding_B${name}`]: [16, 4],
      [`${P}model.embed_tokens.base_layer.weight`]: [100, 16],
    });
    expect(lowRank.get('model.embed_tokens')).toMatchObject({ kind: 'embedding', rank: 4, scale: 2 });
    expect([...origins.keys()]).toEqual(['model.embed_tokens.weight']);
  });

  test.each(['', '.weight', '.default', '.default.weight'])('a magnitude with “%s” behind it', (suffix) => {
    const { lowRank } = read(
      { ...pair(), [`${P}${Q}.lora_magnitude_vector${suffix}`]: [32] },
      { use_dora: true },
    );
    expect(lowRank.get(Q)?.magnitude?.shape).toEqual([32]);
  });

  test('saved modules, in the forms of the file and of memory', () => {
    const { replaces, ignored } = read(
      {
        [`${P}lm_head.weight`]: [100, 16],
        [`${P}score.modules_to_save.default.dense.weight`]: [2, 16],
        [`${P}score.original_module.weight`]: [2, 16],
        'model.norm.weight': [16],
      },
      { modules_to_save: ['lm_head', 'score', 'norm'] },
    );
    expect([...replaces.keys()].sort()).toEqual([
      'lm_head.weight',
      'model.norm.weight',
      'score.dense.weight',
    ]);
    expect(ignored).toEqual([`${P}score.original_module.weight`]);
  });

  test('trained biases and resized embeddings are loaded over the base’s', () => {
    const { origins } = read(
      {
        ...pair(),
        [`${P}${Q}.base_layer.bias`]: [32],
        [`${P}model.layers.0.mlp.up_proj.bias`]: [32],
        [`${P}model.embed_tokens.weight`]: [101, 16],
      },
      { bias: 'all' },
    );
    expect([...origins.keys()]).toEqual([
      `${Q}.bias`,
      'model.layers.0.mlp.up_proj.bias',
      'model.embed_tokens.weight',
    ]);
  });

  test('a module called __proto__', () => {
    expect([...read(pair('__proto__')).lowRank.keys()]).toEqual(['__proto__']);
  });
});

describe('scale and rank', () => {
  test('patterns and rsLoRA, as in PEFT', () => {
    const down = 'model.layers.2.mlp.down_proj';
    const own = config({ use_rslora: true });
    const tensors = stored({ ...pair(), ...pair(down, 16) });
    expect(modulePaths(own, tensors.keys())).toEqual([Q, down]);
    const matched = { ranks: new Map([[down, 16]]), alphas: new Map([[down, 10]]) };
    const { lowRank } = readAdapterTensors(own, tensors, undefined, matched);
    expect(lowRank.get(Q)).toMatchObject({ rank: 4, scale: 8 / 2 });
    expect(lowRank.get(down)).toMatchObject({ rank: 16, scale: 10 / 4 });
  });

  test('the quotient is exact in f64', () => {
    expect(read(pair(Q, 3), { r: 3, lora_alpha: 16 }).lowRank.get(Q)?.scale).toBe(16 / 3);
    expect(read(pair(Q, 3), { r: 3, lora_alpha: 16, use_rslora: true }).lowRank.get(Q)?.scale).toBe(
      16 / Math.sqrt(3),
    );
  });
});

describe('lora_bias', () => {
  const bias = { [`${P}${Q}.lora_B.bias`]: [32] };
  test('goes with the pair', () => {
    expect(read({ ...pair(), ...bias }, { lora_bias: true }).lowRank.get(Q)?.bias?.name).toBe(
      `${P}${Q}.lora_B.bias`,
    );
  });

  test('is reported as ignored when the config does not say so', () => {
    const { lowRank, ignored } = read({ ...pair(), ...bias });
    expect(lowRank.get(Q)).not.toHaveProperty('bias');
    expect(ignored).toEqual([`${P}${Q}.lora_B.bias`]);
  });
});

describe('refused', () => {
  test.each<[string, Record<string, number[]>, object, string, RegExp]>([
    [
      'an A without its B',
      { [`${P}${Q}.lora_A.weight`]: [4, 16] },
      {},
      'AdapterInvalid',
      /q_proj” has no lora_B, only “.*lora_A\.weight”/,
    ],
    ['a B without its A', { [`${P}${Q}.lora_B.weight`]: [32, 4] }, {}, 'AdapterInvalid', /has no lora_A/],
    [
      'LoRA under the name of another kind',
      pair(),
      { peft_type: 'IA3' },
      'AdapterInvalid',
      /describes a IA3 adapter, but the weights hold factors of LoRA/,
    ],
    [
      'half an embedding',
      { [`${P}e.lora_embedding_A`]: [4, 9] },
      {},
      'AdapterInvalid',
      /has no lora_embedding_B/,
    ],
    [
      'a magnitude alone',
      { [`${P}${Q}.lora_magnitude_vector`]: [32] },
      { use_dora: true },
      'AdapterInvalid',
      /lora_magnitude_vector/,
    ],
    ['another rank than the config’s', pair(Q, 8), {}, 'AdapterInvalid', /rank by the config is 4/],
    [
      'factors that do not fit',
      { ...pair(), [`${P}${Q}.lora_B.weight`]: [32, 5] },
      {},
      'AdapterInvalid',
      /\[32,5\]/,
    ],
    [
      'a convolution whose B has a kernel',
      { [`${P}c.lora_A.weight`]: [4, 3, 3, 3], [`${P}c.lora_B.weight`]: [8, 4, 3, 1] },
      {},
      'AdapterUnsupported',
      /\[8,4,3,1\]/,
    ],
    [
      'linear and embedding at once',
      { ...pair(), [`${P}${Q}.lora_embedding_A`]: [4, 9] },
      {},
      'AdapterInvalid',
      /both/,
    ],
    ['DoRA without magnitude', pair(), { use_dora: true }, 'AdapterInvalid', /no lora_magnitude_vector/],
    [
      'a magnitude without DoRA',
      { ...pair(), [`${P}${Q}.lora_magnitude_vector`]: [32] },
      {},
      'AdapterInvalid',
      /use_dora/,
    ],
    [
      'a magnitude of another length',
      { ...pair(), [`${P}${Q}.lora_magnitude_vector`]: [16] },
      { use_dora: true },
      'AdapterInvalid',
      /32 outputs/,
    ],
    ['lora_bias without bias', pair(), { lora_bias: true }, 'AdapterInvalid', /lora_bias/],
    [
      'a bias of another length',
      { ...pair(), [`${P}${Q}.lora_B.bias`]: [16] },
      { lora_bias: true },
      'AdapterInvalid',
      /32 outputs/,
    ],
    [
      'two adapters',
      { ...pair(), [`${P}${Q}.lora_A.other.weight`]: [4, 16] },
      {},
      'AdapterInvalid',
      /more than one adapter/,
    ],
    [
      'a module updated and replaced',
      { ...pair(), [`${P}${Q}.weight`]: [32, 16] },
      {},
      'AdapterInvalid',
      /both/,
    ],
    [
      'a Stable Diffusion LoRA',
      { 'text_encoder:0:down': [1, 768] },
      {},
      'AdapterUnsupported',
      /text_encoder:0:down/,
    ],
    ['a kohya LoRA', { 'lora_unet_x.lora_down.weight': [4, 16] }, {}, 'AdapterUnsupported', /lora_down/],
    ['AdaLoRA', { ...pair(), [`${P}${Q}.lora_E`]: [4, 1] }, {}, 'AdapterUnsupported', /lora_E/],
    ['IA3', { [`${P}${Q}.ia3_l`]: [16] }, {}, 'AdapterUnsupported', /ia3_l/],
    ['a full model', { 'model.norm.weight': [16] }, {}, 'AdapterUnsupported', /model\.norm\.weight/],
    ['nothing', {}, {}, 'AdapterInvalid', /nothing that changes the base/],
    [
      'only the base’s side of a saved module',
      { [`${P}e.original_module.weight`]: [9, 8] },
      {},
      'AdapterInvalid',
      /nothing that changes/,
    ],
    ['an over-long path', pair('x.'.repeat(600)), {}, 'AdapterInvalid', /over-long/],
  ])('%s', (_, shapes, more, code, word) => {
    expect(() => read(shapes, more)).toThrow(refusal(code, word));
  });

  test('factors that are no floats', () => {
    expect(() => readAdapterTensors(config(), stored(pair(), 'I8'))).toThrow(
      refusal('AdapterUnsupported', /as I8/),
    );
  });
});

describe('R58: adapters of many modules and of long names', () => {
  test('a mixture of experts with 40 000 adapted modules is read at once', () => {
    const modules = Array.from(
      { length: 40_000 },
      (_, i) => `model.layers.${i % 100}.mlp.experts.${i}.up_proj`,
    );
    const { lowRank } = read(Object.assign({}, ...modules.map((module) => pair(module))));
    expect(lowRank.size).toBe(40_000);
  });

  test('names are compared with modules_to_save in linear time, and not for hours', () => {
    const saved = { modules_to_save: ['score', 'no.such.module'] };
    const name = `${'a.'.repeat(49_000)}score.weight`;
    expect([...read({ [name]: [1] }, saved).replaces.keys()]).toEqual([name]);
    expect(() => read({ 'model.scores.weight': [1] }, saved)).toThrow(
      refusal('AdapterUnsupported', /is not a key/),
    );
    const many = { modules_to_save: Array.from({ length: 20_000 }, (_, i) => `m${i}`) };
    expect(() => read({ [name]: [1] }, many)).toThrow(
      refusal('LimitExceeded', /“modules_to_save” has 20000 entries/),
    );
  });
});
