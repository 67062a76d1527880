import { describe, expect, test } from 'vitest';
import { decodeToF32 } from '../../formats/half';
import { memoryFolder } from '../../inputs/memory-models.test.support';
import { CONFIG, modelFolder, random, weightFile, zeros } from '../difference/compare.test.support';
import { readEntry } from './adapter-file';
import {
  base,
  changed,
  configOf,
  DOWN,
  EMBEDDING,
  everything,
  extract,
  K,
  keys,
  NORM,
  Q,
  settings,
} from './extract.test.support';

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
    expect(error! ** 2).toBeCloseTo(1 - kept(rank), 5);
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

  test('half-precision factors say what they cost', async () => {
    const tuned = changed({ [Q]: everything[Q]! });
    const { report, file } = await extract(base, tuned, { rank: { kind: 'rank', rank: 3 }, dtype: 'BF16' });
    expect(file.entries.map(({ dtype }) => dtype)).toEqual(['BF16', 'BF16']);
    expect(report.merged.error).toBeGreaterThan(1e-4);
    expect(report.merged.error).toBeLessThan(1e-2);
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

  test('only an end differs: carried whole it is alone, as factors it is an adapter', async () => {
    const tuned = changed({ [EMBEDDING]: everything[EMBEDDING]! });
    await expect(extract(base, tuned)).rejects.toMatchObject({
      message: expect.stringContaining('would all be carried whole'),
      hint: expect.stringContaining('--embeddings lora'),
    });
    const { report } = await extract(base, tuned, settings({ embeddings: 'lora' }));
    expect(report.modules.map(({ module }) => module)).toEqual(['model.embed_tokens']);
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

test('factors that do not fit their dtype are found by merging them', async () => {
  const far = changed({ [Q]: random([24, 24], 1e10, 60) });
  const { report } = await extract(base, far, { dtype: 'F16' });
  expect(report.modules[0]!.error).toBeNull();
  expect(report.merged.failed).toMatchObject([{ name: Q }]);
});
