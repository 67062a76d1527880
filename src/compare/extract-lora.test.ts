import { describe, expect, test } from 'vitest';
import { createCpuEngine } from '../cpu/cpu-engine';
import { decodeToF32 } from '../formats/half';
import { memoryFolder } from '../merge/memory-models.test.support';
import type { ModelFolder } from '../sources/model-folder';
import { readEntry } from './adapter-file';
import {
  CONFIG,
  lowRankDelta,
  modelFolder,
  plus,
  random,
  sidesOf,
  type Weights,
  weightFile,
  zeros,
} from './compare.test.support';
import { type ExtractedLora, extractLora } from './extract-lora';
import type { ExtractOptions } from './lora-modules';

type Model = Record<string, Weights>;
const layer = (module: string) => `model.layers.0.${module}`;
const Q = layer('self_attn.q_proj.weight');
const K = layer('self_attn.k_proj.weight');
const DOWN = layer('mlp.down_proj.weight');
const NORM = layer('input_layernorm.weight');
const FINAL = 'model.norm.weight';
const EMBEDDING = 'model.embed_tokens.weight';
const HEAD = 'lm_head.weight';

const base: Model = {
  [EMBEDDING]: random([40, 24], 0.1, 1),
  [Q]: random([24, 24], 0.1, 2),
  [K]: random([12, 24], 0.1, 3),
  [DOWN]: random([24, 32], 0.1, 4),
  [NORM]: random([24], 1, 5),
  [FINAL]: random([24], 1, 6),
  [HEAD]: random([40, 24], 0.1, 7),
};

/** The model with some tensors changed. */
function changed(changes: Record<string, Weights>, from: Model = base): Model {
  return Object.fromEntries(
    Object.entries(from).map(([name, w]) => [name, changes[name] ? plus(w, changes[name]) : w]),
  );
}

const everything: Record<string, Weights> = {
  [EMBEDDING]: random([40, 24], 0.01, 11),
  [Q]: lowRankDelta([24, 24], 3, 0.01, 12),
  [K]: random([12, 24], 0.01, 13),
  [DOWN]: random([24, 32], 0.01, 14),
  [NORM]: random([24], 0.01, 15),
  [FINAL]: random([24], 0.01, 16),
};

async function extract(
  one: Model | ModelFolder,
  two: Model | ModelFolder,
  options: Partial<ExtractOptions> & { config?: Record<string, unknown> } = {},
  refs: [string, string] = ['base', 'tuned'],
  more: ModelFolder[] = [],
): Promise<ExtractedLora> {
  const { config = CONFIG, ...rest } = options;
  const folder = (path: string, model: Model | ModelFolder) =>
    'files' in model ? (model as ModelFolder) : modelFolder(path, model as Model, config);
  const sides = await sidesOf([folder('base', one), folder('tuned', two), ...more], ...refs);
  return extractLora(
    {
      base: sides.base,
      tuned: sides.tuned,
      read: sides.read,
      engine: createCpuEngine(),
      rank: { kind: 'rank', rank: 64 },
      maxRank: 128,
      dtype: 'F32',
      seed: 0,
      ...rest,
      settings: { include: [], exclude: [], embeddings: 'save', vectors: 'save', ...rest.settings },
    },
    sides.notes,
  );
}

const settings = (given: Partial<ExtractOptions['settings']>) => ({
  settings: { include: [], exclude: [], embeddings: 'save' as const, vectors: 'save' as const, ...given },
});
const keys = ({ file }: ExtractedLora) =>
  file.entries.map(({ name, shape }) => `${name.replace('base_model.model.', '')} [${shape}]`).sort();
const configOf = ({ config }: ExtractedLora) => JSON.parse(config) as Record<string, unknown>;
const left = ({ report }: ExtractedLora) =>
  Object.fromEntries(report.left.map(({ name, why }) => [name, why]));

describe('a full-rank adapter', () => {
  test('carries everything that differs and gives the fine-tune again to f32 rounding', async () => {
    const lora = await extract(base, changed(everything));
    expect(keys(lora)).toEqual([
      'model.embed_tokens.weight [40,24]',
      'model.layers.0.input_layernorm.weight [24]',
      'model.layers.0.mlp.down_proj.lora_A.weight [24,32]',
      'model.layers.0.mlp.down_proj.lora_B.weight [24,24]',
      'model.layers.0.self_attn.k_proj.lora_A.weight [12,24]',
      'model.layers.0.self_attn.k_proj.lora_B.weight [12,12]',
      'model.layers.0.self_attn.q_proj.lora_A.weight [24,24]',
      'model.layers.0.self_attn.q_proj.lora_B.weight [24,24]',
      'model.norm.weight [24]',
    ]);
    expect(lora.report.merged.maxError).toBeLessThan(1.2e-7);
    expect(lora.report.merged.error).toBeLessThan(1e-5);
    expect(lora.report.left).toEqual([]);
    expect(configOf(lora)).toMatchObject({
      peft_type: 'LORA',
      r: 24,
      lora_alpha: 24,
      rank_pattern: { 'model.layers.0.self_attn.k_proj': 12 },
      alpha_pattern: { 'model.layers.0.self_attn.k_proj': 12 },
      target_modules: ['down_proj', 'k_proj', 'q_proj'],
      modules_to_save: ['model.embed_tokens', 'model.layers.0.input_layernorm', 'model.norm'],
      fan_in_fan_out: false,
      base_model_name_or_path: 'base',
      bias: 'none',
      use_rslora: false,
      task_type: 'CAUSAL_LM',
      inference_mode: true,
    });
    expect(configOf(lora)).not.toHaveProperty('lora_bias');
    expect(lora.report.notes).toEqual([
      'Rank 64 is above the smaller side of 3 of 3 modules; those get their full rank: model.layers.0.mlp.down_proj, model.layers.0.self_attn.k_proj, model.layers.0.self_attn.q_proj.',
    ]);
  });

  test('the scale goes evenly to both factors: A·Aᵀ = S = Bᵀ·B', async () => {
    const lora = await extract(base, changed({ [Q]: everything[Q]! }), { rank: { kind: 'rank', rank: 3 } });
    const [a, b] = await Promise.all(
      lora.file.entries.map(async (entry) => {
        const bytes = await readEntry(entry, 0, entry.byteLength, () => Promise.reject(new Error('no copy')));
        const values = new Float32Array(bytes.length / 4);
        decodeToF32(bytes, 'F32', values);
        return values;
      }),
    );
    const s = lora.report.modules[0]!.singularValues;
    for (let i = 0; i < 3; i++) {
      const row = a!.subarray(i * 24, (i + 1) * 24);
      const column = Array.from({ length: 24 }, (_, o) => b![o * 3 + i]!);
      expect(row.reduce((sum, x) => sum + x * x, 0)).toBeCloseTo(s[i]!, 6);
      expect(column.reduce((sum, x) => sum + x * x, 0)).toBeCloseTo(s[i]!, 6);
    }
  });
});

describe('ranks', () => {
  test('a change of rank 3 is found by rank 3, by energy, and by cutoff', async () => {
    const tuned = changed({ [Q]: everything[Q]! });
    for (const rank of [
      { kind: 'rank', rank: 3 },
      { kind: 'energy', share: 1 },
      { kind: 'cutoff', ratio: 1e-4 },
    ] as const) {
      const { report } = await extract(base, tuned, { rank });
      expect(report.modules).toMatchObject([{ rank: 3, fullRank: 24, exact: true }]);
      expect(report.modules[0]!.error).toBeLessThan(1e-5);
    }
  });

  test('energy: the error that is left is the energy that is not kept', async () => {
    const { report } = await extract(base, changed({ [DOWN]: everything[DOWN]! }), {
      rank: { kind: 'energy', share: 0.9 },
    });
    const [{ error, rank, singularValues }] = report.modules as [(typeof report.modules)[number]];
    const all = singularValues.reduce((sum, s) => sum + s * s, 0);
    const kept = (k: number) => singularValues.slice(0, k).reduce((sum, s) => sum + s * s, 0) / all;
    expect(kept(rank)).toBeGreaterThanOrEqual(0.9);
    expect(kept(rank - 1)).toBeLessThan(0.9);
    expect(error ** 2).toBeCloseTo(1 - kept(rank), 5);
  });

  test('an energy that the largest rank does not reach is said', async () => {
    const { report } = await extract(base, changed({ [DOWN]: everything[DOWN]! }), {
      rank: { kind: 'energy', share: 0.99 },
      maxRank: 4,
    });
    expect(report.modules[0]!.rank).toBe(4);
    expect(report.notes.join(' ')).toMatch(/1 of 1 module would need more than rank 4/);
  });

  test('a byte budget is kept, and goes where it captures most', async () => {
    const tuned = changed({ [Q]: everything[Q]!, [DOWN]: everything[DOWN]!, [NORM]: everything[NORM]! });
    const lora = await extract(base, tuned, { rank: { kind: 'bytes', bytes: 2000 }, ...settings({}) });
    const stored = lora.file.entries.reduce((sum, { byteLength }) => sum + byteLength, 0);
    expect(stored).toBeLessThanOrEqual(2000);
    expect(stored).toBeGreaterThan(2000 - 4 * (24 + 32));
    const ranks = new Map(lora.report.modules.map(({ module, rank }) => [module, rank]));
    // its three values are the largest; what is left at the end pays for one more of it
    expect(ranks.get('model.layers.0.self_attn.q_proj')).toBe(4);
    expect(ranks.get('model.layers.0.mlp.down_proj')).toBe(5);
    expect(lora.report.merged.error).toBeLessThan(1);
    await expect(extract(base, tuned, { rank: { kind: 'bytes', bytes: 100 } })).rejects.toMatchObject({
      code: 'LimitExceeded',
      message: '100 bytes leave no room for factors: 1 tensor carried whole takes 96 bytes.',
    });
  });

  test.each([
    { kind: 'rank', rank: 0 },
    { kind: 'rank', rank: 2.5 },
    { kind: 'energy', share: 1.5 },
    { kind: 'cutoff', ratio: 0 },
    { kind: 'bytes', bytes: -1 },
  ] as const)('$kind out of its range is refused', async (rank) => {
    await expect(extract(base, changed(everything), { rank })).rejects.toMatchObject({ code: 'Usage' });
  });

  test('half-precision factors say what they cost', async () => {
    const tuned = changed({ [Q]: everything[Q]! });
    const { report, file } = await extract(base, tuned, { rank: { kind: 'rank', rank: 3 }, dtype: 'BF16' });
    expect(file.entries.map(({ dtype }) => dtype)).toEqual(['BF16', 'BF16']);
    expect(report.merged.error).toBeGreaterThan(1e-4);
    expect(report.merged.error).toBeLessThan(1e-2);
  });
});

describe('modules', () => {
  test('include and exclude choose by parts of the path; what is left out is said', async () => {
    const lora = await extract(
      base,
      changed(everything),
      settings({ include: ['self_attn', 'mlp'], exclude: ['k_proj'] }),
    );
    expect(lora.report.modules.map(({ module }) => module)).toEqual([
      'model.layers.0.mlp.down_proj',
      'model.layers.0.self_attn.q_proj',
    ]);
    expect(left(lora)[K]).toBe('its module is left out on request');
    expect(lora.report.left.find(({ name }) => name === K)!.normDelta).toBeGreaterThan(0);
    expect(lora.report.merged.error).toBeGreaterThan(0.1);
  });

  test('a target is named by its path where another module of that name does not change', async () => {
    const two = (model: Model): Model => ({
      ...model,
      'model.layers.1.self_attn.q_proj.weight': random([24, 24], 0.1, 20),
    });
    const lora = await extract(two(base), two(changed({ [Q]: everything[Q]!, [K]: everything[K]! })));
    expect(configOf(lora).target_modules).toEqual(['k_proj', 'model.layers.0.self_attn.q_proj']);
  });

  test('embeddings and heads as factors', async () => {
    const tuned = changed({ ...everything, [HEAD]: lowRankDelta([40, 24], 2, 0.01, 21) });
    const lora = await extract(base, tuned, settings({ embeddings: 'lora', vectors: 'skip' }));
    expect(keys(lora)).toContain('model.embed_tokens.lora_embedding_A [24,40]');
    expect(keys(lora)).toContain('model.embed_tokens.lora_embedding_B [24,24]');
    expect(keys(lora)).toContain('lm_head.lora_A.weight [24,24]');
    expect(configOf(lora)).toMatchObject({ modules_to_save: null, fan_in_fan_out: false });
    expect(left(lora)).toEqual({
      [NORM]: 'vectors are left out on request',
      [FINAL]: 'vectors are left out on request',
    });
    for (const { error } of lora.report.modules) expect(error).toBeLessThan(1e-5);
  });

  test('a tied embedding is carried with its head, so that PEFT loads both', async () => {
    const { [HEAD]: _, ...tied } = base;
    const config = { ...CONFIG, tie_word_embeddings: true };
    const lora = await extract(tied, changed(everything, tied), { config });
    expect(keys(lora)).toContain('lm_head.weight [40,24]');
    expect(configOf(lora).modules_to_save).toContain('lm_head');
    expect(lora.report.merged.maxError).toBeLessThan(1.2e-7);
    const factors = await extract(tied, changed(everything, tied), {
      config,
      ...settings({ embeddings: 'lora' }),
    });
    expect(factors.report.notes.join(' ')).toMatch(/The head is tied to the embedding/);
    expect(factors.report.merged.error).toBeLessThan(1e-5);
  });

  test('a head of its own over a tied base is carried whole', async () => {
    const { [HEAD]: _, ...tied } = base;
    const own = { ...changed({ [Q]: everything[Q]! }, tied), [HEAD]: random([40, 24], 0.1, 22) };
    const tuned = modelFolder('tuned', own);
    const lora = await extract(modelFolder('base', tied, { ...CONFIG, tie_word_embeddings: true }), tuned);
    expect(keys(lora)).toContain('lm_head.weight [40,24]');
    expect(lora.report.merged.maxError).toBeLessThan(1.2e-7);
  });

  test('a resized embedding is carried whole, with the remark that the base must be resized', async () => {
    const larger = { ...changed({ [Q]: everything[Q]! }), [EMBEDDING]: random([44, 24], 0.1, 23) };
    const lora = await extract(base, larger);
    expect(keys(lora)).toContain('model.embed_tokens.weight [44,24]');
    expect(lora.report.notes.join(' ')).toMatch(/40 rows in the base and 44 in the fine-tune/);
  });

  test('a fine-tune that is an adapter itself: its norm and embedding are computed and carried', async () => {
    const adapter = memoryFolder('lora', {
      'adapter_config.json': { peft_type: 'LORA', r: 2, lora_alpha: 2, target_modules: [] },
      'adapter_model.safetensors': weightFile({
        'base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight': random([2, 24], 0.1, 30),
        'base_model.model.model.layers.0.self_attn.q_proj.lora_B.weight': random([24, 2], 0.1, 31),
        'base_model.model.model.embed_tokens.lora_embedding_A': random([2, 40], 0.1, 32),
        'base_model.model.model.embed_tokens.lora_embedding_B': random([24, 2], 0.1, 33),
      }),
    });
    const lora = await extract(
      base,
      base,
      { rank: { kind: 'cutoff', ratio: 1e-4 } },
      ['base', 'base+lora'],
      [adapter],
    );
    expect(lora.report.modules).toMatchObject([{ module: 'model.layers.0.self_attn.q_proj', rank: 2 }]);
    expect(lora.report.saved).toMatchObject([{ name: 'base_model.model.model.embed_tokens.weight' }]);
    expect(lora.report.merged.error).toBeLessThan(1e-5);
  });
});

describe('GPT-2: Conv1D stores [in, out], and the bare model has no prefix', () => {
  const gpt2: Model = {
    'wte.weight': random([40, 24], 0.1, 1),
    'h.0.attn.c_attn.weight': random([24, 72], 0.1, 2),
    'h.0.attn.c_attn.bias': random([72], 0.1, 3),
    'h.0.attn.c_proj.weight': random([24, 24], 0.1, 4),
    'h.0.attn.c_proj.bias': random([24], 0.1, 5),
    'h.0.ln_1.weight': random([24], 1, 6),
    'h.0.ln_1.bias': random([24], 0.1, 7),
  };
  const config = { model_type: 'gpt2', n_layer: 1, n_embd: 24, vocab_size: 40 };
  const changes = {
    'h.0.attn.c_attn.weight': lowRankDelta([24, 72], 2, 0.01, 11),
    'h.0.attn.c_attn.bias': random([72], 0.01, 12),
    'h.0.attn.c_proj.weight': lowRankDelta([24, 24], 2, 0.01, 13),
    'h.0.ln_1.bias': random([24], 0.01, 14),
  };

  test('factors are transposed, fan_in_fan_out set, biases go to lora_B, a norm goes with both its tensors', async () => {
    const lora = await extract(gpt2, changed(changes, gpt2), { config, rank: { kind: 'rank', rank: 2 } });
    expect(keys(lora)).toEqual([
      'transformer.h.0.attn.c_attn.lora_A.weight [2,24]',
      'transformer.h.0.attn.c_attn.lora_B.bias [72]',
      'transformer.h.0.attn.c_attn.lora_B.weight [72,2]',
      'transformer.h.0.attn.c_proj.lora_A.weight [2,24]',
      'transformer.h.0.attn.c_proj.lora_B.bias [24]',
      'transformer.h.0.attn.c_proj.lora_B.weight [24,2]',
      'transformer.h.0.ln_1.bias [24]',
      'transformer.h.0.ln_1.weight [24]',
    ]);
    expect(configOf(lora)).toMatchObject({
      fan_in_fan_out: true,
      lora_bias: true,
      modules_to_save: ['transformer.h.0.ln_1'],
    });
    expect(lora.report.left).toEqual([]);
    expect(lora.report.merged.error).toBeLessThan(1e-5);
    expect(lora.report.merged.maxError).toBeLessThan(1.2e-7);
  });
});

describe('biases that PEFT cannot load', () => {
  const qwen: Model = { ...base, [layer('self_attn.q_proj.bias')]: random([24], 0.1, 40) };
  const changes = {
    [Q]: everything[Q]!,
    [DOWN]: everything[DOWN]!,
    [layer('self_attn.q_proj.bias')]: random([24], 0.01, 41),
  };

  test('some targets have one and others not: its change is left, with its norm', async () => {
    const lora = await extract(qwen, changed(changes, qwen));
    expect(configOf(lora)).not.toHaveProperty('lora_bias');
    expect(lora.report.left).toMatchObject([
      {
        name: layer('self_attn.q_proj.bias'),
        why: 'PEFT takes biases of lora_B only when every target has a bias',
      },
    ]);
    const { values } = changes[layer('self_attn.q_proj.bias')]!;
    expect(lora.report.left[0]!.normDelta).toBeCloseTo(Math.hypot(...values), 5);
  });

  test('every target has one', async () => {
    const { [DOWN]: _, ...only } = changes;
    const lora = await extract(qwen, changed(only, qwen));
    expect(configOf(lora)).toHaveProperty('lora_bias', true);
    expect(lora.report.left).toEqual([]);
    expect(lora.report.merged.maxError).toBeLessThan(1.2e-7);
  });
});

describe('refusals', () => {
  test('identical models: rank 0, nothing to do', async () => {
    await expect(extract(base, base)).rejects.toMatchObject({
      code: 'NothingToExtract',
      message:
        'base and tuned are identical in all 7 tensors: the difference is zero and has rank 0, so there is nothing to extract.',
    });
  });

  test('only vectors differ', async () => {
    await expect(extract(base, changed({ [NORM]: everything[NORM]! }))).rejects.toThrow(
      /No matrix that differs is left for factors; what differs is model\.layers\.0\.input_layernorm\.weight/,
    );
  });

  test('other families, other shapes, nothing in common', async () => {
    const gpt2 = modelFolder('tuned', base, { ...CONFIG, model_type: 'gpt2' });
    await expect(extract(base, gpt2)).rejects.toThrow('tuned is a gpt2 model, but base is a llama model.');
    const wider = { ...base, [Q]: random([30, 24], 0.1, 50) };
    await expect(extract(base, wider)).rejects.toThrow(
      /1 matrix has another shape in tuned than in base: .*q_proj\.weight \[24,24\] and \[30,24\]/,
    );
    await expect(extract(base, { 'x.weight': zeros([4, 4]) })).rejects.toThrow(
      'base and tuned have no tensor in common.',
    );
  });

  test('a base with an adapter, and a fine-tune with NaN', async () => {
    const adapter = memoryFolder('lora', {
      'adapter_config.json': { peft_type: 'LORA', r: 2, lora_alpha: 2, target_modules: [] },
      'adapter_model.safetensors': weightFile({
        [`base_model.model.${Q.replace('.weight', '')}.lora_A.weight`]: random([2, 24], 0.1, 30),
        [`base_model.model.${Q.replace('.weight', '')}.lora_B.weight`]: random([24, 2], 0.1, 31),
      }),
    });
    await expect(
      extract(base, changed(everything), {}, ['base+lora', 'tuned'], [adapter]),
    ).rejects.toMatchObject({ code: 'Usage' });
    const broken = changed(everything);
    broken[K]!.values[5] = Number.POSITIVE_INFINITY;
    await expect(extract(base, broken)).rejects.toMatchObject({ code: 'NonFinite' });
  });
});

test('the card names models as text and says what is missing', async () => {
  const lora = await extract(base, changed(everything), settings({ embeddings: 'skip' }));
  expect(lora.card).toMatch(/^---\nlibrary_name: peft\ntags:\n {2}- lora\n {2}- amalgam\n---\n/);
  expect(lora.card).toContain('extracted from `tuned` on the base `base`');
  expect(lora.card).toContain(
    '`model.embed_tokens.weight`: embeddings and heads are left out on request (norm of the change',
  );
  expect(lora.card).toContain('3 modules with factors, rank 64');
});
