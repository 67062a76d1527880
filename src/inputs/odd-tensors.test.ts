/** Tensors of odd dtypes, shapes, places and values, merged whole on the typed-array engine. */
import { describe, expect, test } from 'vitest';
import { createCpuBackend } from '../backend/cpu/cpu-backend';
import type { Dtype } from '../formats/dtype';
import { bf16ToF32, f16ToF32, f32ToBf16, f32ToF16 } from '../formats/half';
import type { Recipe } from '../formats/recipe';
import { parseRecipe } from '../formats/recipe-yaml';
import { headerLength, parseSafetensorsHeader } from '../formats/safetensors-header';
import { methodById } from '../merge/methods';
import { makePlan } from '../merge/plan/recipe-plan';
import { finishShards } from '../merge/plan/shards';
import { runPlan } from '../merge/run/run';
import { findFile, type ModelFolder } from '../sources/model-folder';
import { memoryFolder, openerOf } from './memory-models.test.support';
import { readingRows } from './row-reader';

type Tensor = { dtype: Dtype; shape: number[]; bytes: Uint8Array };

const f32 = (...values: number[]) => new Uint8Array(Float32Array.from(values).buffer);
const bitsOf = (value: number) => new Uint32Array(Float32Array.of(value).buffer)[0]!;
const bf16 = (...values: number[]) =>
  new Uint8Array(Uint16Array.from(values, (v) => f32ToBf16(bitsOf(v))).buffer);
const f16 = (...values: number[]) =>
  new Uint8Array(Uint16Array.from(values, (v) => f32ToF16(bitsOf(v))).buffer);

/** A file with the tensors in the order given, as old writers left them: nothing is aligned. */
function fileOf(tensors: Record<string, Tensor>, pad = 0): Uint8Array<ArrayBuffer> {
  let at = 0;
  const members = Object.entries(tensors).map(([name, { dtype, shape, bytes }]) => {
    const begin = at;
    at += bytes.length;
    return `${JSON.stringify(name)}:{"dtype":"${dtype}","shape":${JSON.stringify(shape)},"data_offsets":[${begin},${at}]}`;
  });
  const header = new TextEncoder().encode(`{${members.join(',')}}${' '.repeat(pad)}`);
  const length = new Uint8Array(8);
  new DataView(length.buffer).setBigUint64(0, BigInt(header.length), true);
  return Uint8Array.from(Buffer.concat([length, header, ...Object.values(tensors).map((t) => t.bytes)]));
}

async function merge(
  recipeText: string,
  models: Record<string, Uint8Array<ArrayBuffer>>,
  adapters: readonly ModelFolder[] = [],
) {
  const { recipe, problems } = parseRecipe(recipeText);
  expect(problems).toEqual([]);
  const folders = Object.entries(models).map(([name, file]) =>
    memoryFolder(name, { 'model.safetensors': file }),
  );
  const plan = await makePlan(recipe as Recipe, openerOf(...folders, ...adapters), methodById);
  const errors = plan.problems.filter((p) => p.severity === 'error');
  if (errors.length > 0) throw new Error(errors.map(({ code, message }) => `${code} ${message}`).join('\n'));
  const pieces: Uint8Array[] = [];
  const { tensors: reports } = await runPlan({
    plan,
    shards: finishShards(plan, new Map()),
    engine: createCpuBackend(),
    methods: methodById,
    read: readingRows(async (ref, begin, end) => {
      const adapter = adapters.find(({ path }) => path === ref.folder);
      if (adapter)
        return findFile(adapter, ref.file)!
          .open()
          .read(ref.begin + begin, ref.begin + end);
      return models[ref.folder]!.slice(ref.begin + begin, ref.begin + end);
    }),
    openShard: async (shard) => {
      pieces.push(shard.header);
      return {
        append: async (bytes) => void pieces.push(bytes.slice()),
        finish: async () => undefined,
        abort() {},
      };
    },
  });
  const file = Uint8Array.from(Buffer.concat(pieces));
  const end = 8 + headerLength(file.subarray(0, 8), file.length);
  const { tensors } = parseSafetensorsHeader(file.slice(8, end), file.length, 'out');
  return {
    reports,
    bytes: (name: string) => file.slice(tensors.get(name)!.begin, tensors.get(name)!.end),
    dtype: (name: string) => tensors.get(name)!.dtype,
  };
}

const linear = (models: string[], rest = '') =>
  `merge_method: linear\nmodels:\n${models.map((m) => `  - model: ${m}\n    parameters: {weight: 1}\n`).join('')}${rest}`;
const values = (bytes: Uint8Array<ArrayBuffer>) => [...new Float32Array(bytes.slice().buffer)];

describe('R8: dtypes that cannot be computed with', () => {
  const a = { q: { dtype: 'F8_E4M3', shape: [3], bytes: Uint8Array.of(1, 2, 3) } } as const;
  const files = {
    a: fileOf({ q: { ...a.q, shape: [3] } }),
    b: fileOf({ q: { ...a.q, shape: [3], bytes: Uint8Array.of(4, 5, 6) } }),
  };
  test('passthrough copies their bytes', async () => {
    const merged = await merge('merge_method: passthrough\nmodels:\n  - model: a\n', { a: files.a });
    expect([...merged.bytes('q')]).toEqual([1, 2, 3]);
    expect(merged.dtype('q')).toBe('F8_E4M3');
  });
  test('R62: whole numbers stay as the base has them', async () => {
    const file = (value: number) =>
      fileOf({
        count: { dtype: 'I64', shape: [1], bytes: Uint8Array.of(value, 0, 0, 0, 0, 0, 0, 0) },
        plain: { dtype: 'F32', shape: [1], bytes: f32(value) },
      });
    const recipe =
      'merge_method: task_arithmetic\nbase_model: a\nmodels:\n  - model: b\n    parameters: {weight: 1}\n';
    const merged = await merge(recipe, { a: file(1), b: file(3) });
    expect(merged.bytes('count')[0]).toBe(1);
    expect(merged.dtype('count')).toBe('I64');
    expect(values(merged.bytes('plain'))).toEqual([3]);
  });
  test('any other method stops at the plan', async () => {
    await expect(merge(linear(['a', 'b']), files)).rejects.toThrow(/DtypeUnsupported.*F8_E4M3/);
  });
});

test('R9: scalars and empty tensors are merged and copied', async () => {
  const file = (value: number) =>
    fileOf({
      scalar: { dtype: 'F32', shape: [], bytes: f32(value) },
      empty: { dtype: 'F32', shape: [2, 0], bytes: new Uint8Array(0) },
      plain: { dtype: 'F32', shape: [1], bytes: f32(10 * value) },
    });
  const merged = await merge(linear(['a', 'b']), { a: file(1), b: file(3) });
  expect(values(merged.bytes('scalar'))).toEqual([2]);
  expect(values(merged.bytes('plain'))).toEqual([20]);
  expect(merged.bytes('empty').length).toBe(0);
});

test.each([0, 1, 2, 3])('R12: data that begins %i bytes off a word, tensors at odd places', async (pad) => {
  const file = (value: number) =>
    fileOf(
      {
        odd: { dtype: 'U8', shape: [3], bytes: Uint8Array.of(7, 8, 9) },
        w: { dtype: 'F32', shape: [2], bytes: f32(value, -value) },
        h: { dtype: 'BF16', shape: [1], bytes: bf16(value) },
        v: { dtype: 'F32', shape: [1], bytes: f32(value) },
      },
      pad,
    );
  const merged = await merge(
    'merge_method: linear\nmodels:\n  - {model: a, parameters: {weight: 1}}\n  - {model: b, parameters: {weight: 1}}\n',
    {
      a: file(2),
      b: file(4),
    },
  ).catch((thrown: Error) => thrown);
  // the U8 tensor cannot be averaged, so it stops the plan; without it everything is read from where it lies
  expect(String(merged)).toContain('DtypeUnsupported');
  const floats = (value: number) =>
    fileOf(
      {
        h: { dtype: 'BF16', shape: [3], bytes: bf16(value, value, value) },
        w: { dtype: 'F32', shape: [2], bytes: f32(value, -value) },
      },
      pad,
    );
  const sound = await merge(linear(['a', 'b']), { a: floats(2), b: floats(4) });
  expect(values(sound.bytes('w'))).toEqual([3, -3]);
  expect([...new Uint16Array(sound.bytes('h').slice().buffer)].map((h) => bf16ToF32(h) && h)).toEqual([
    ...new Uint16Array(bf16(3, 3, 3).buffer),
  ]);
});

describe('R20: mixed dtypes', () => {
  const files = (a: number, b: number, c: number) => ({
    a: fileOf({ w: { dtype: 'BF16', shape: [1], bytes: bf16(a) } }),
    b: fileOf({ w: { dtype: 'F16', shape: [1], bytes: f16(b) } }),
    c: fileOf({ w: { dtype: 'F32', shape: [1], bytes: f32(c) } }),
  });
  test('are computed in f32 and written as the recipe says', async () => {
    const merged = await merge(linear(['a', 'b', 'c'], 'dtype: float32\n'), files(1, 2, 4.5));
    expect(values(merged.bytes('w'))).toEqual([2.5]);
  });
  test('an overflow of the output dtype is counted and stops', async () => {
    const large = files(60_000, 60_000, 200_000);
    await expect(merge(linear(['a', 'b', 'c'], 'dtype: float16\n'), large)).rejects.toMatchObject({
      code: 'NonFinite',
    });
    const carried = await merge(
      linear(['a', 'b', 'c'], 'dtype: float16\namalgam: {non_finite: carry}\n'),
      large,
    );
    const [half] = new Uint16Array(carried.bytes('w').slice().buffer);
    expect(f16ToF32(half!)).toBe(bitsOf(Number.POSITIVE_INFINITY));
    expect(carried.reports[0]!.nonFinite).toBeGreaterThan(0);
  });
});

describe('R21: NaN and Inf in an input', () => {
  const files = {
    a: fileOf({ w: { dtype: 'F32', shape: [3], bytes: f32(1, Number.NaN, Number.POSITIVE_INFINITY) } }),
    b: fileOf({ w: { dtype: 'F32', shape: [3], bytes: f32(3, 3, 3) } }),
  };
  test('stop the merge, naming the tensor', async () => {
    await expect(merge(linear(['a', 'b']), files)).rejects.toMatchObject({
      code: 'NonFinite',
      message: expect.stringContaining('w'),
    });
  });
  test('are carried through and counted where the recipe says so', async () => {
    const merged = await merge(linear(['a', 'b'], 'amalgam: {non_finite: carry}\n'), files);
    const [one, two, three] = values(merged.bytes('w'));
    expect(one).toBe(2);
    expect(two).toBeNaN();
    expect(Number.isFinite(three)).toBe(false);
    expect(merged.reports[0]!.nonFinite).toBeGreaterThanOrEqual(2);
  });
});

describe('R21: NaN inside an adapter', () => {
  const key = (part: string) => `base_model.model.model.layers.0.self_attn.q_proj.${part}`;
  const tensor = (shape: number[], last = 0.5) => {
    const count = shape.reduce((a, b) => a * b);
    return { dtype: 'F32' as const, shape, bytes: f32(...Array<number>(count - 1).fill(0.5), last) };
  };
  const files = { base: fileOf({ 'model.layers.0.self_attn.q_proj.weight': tensor([4, 4]) }) };
  const lora = { 'lora_A.weight': [2, 4], 'lora_B.weight': [4, 2] };
  test.each<[string, Record<string, number[]>, Record<string, unknown>]>([
    ['lora_A.weight', lora, {}],
    ['lora_B.weight', lora, {}],
    ['lora_magnitude_vector', { ...lora, lora_magnitude_vector: [4] }, { use_dora: true }],
    ['weight', { weight: [4, 4] }, { modules_to_save: ['q_proj'] }],
    ['ia3_l', { ia3_l: [4, 1] }, { peft_type: 'IA3', feedforward_modules: [] }],
  ])('%s is named with its key, and the adapter that it is of', async (part, shapes, settings) => {
    const stored = Object.entries(shapes).map(([name, shape]) => [
      key(name),
      tensor(shape, name === part ? Number.NaN : 0.5),
    ]);
    const adapter = memoryFolder('lora', {
      'adapter_config.json': {
        ...{ peft_type: 'LORA', r: 2, lora_alpha: 2, target_modules: ['q_proj'] },
        ...settings,
      },
      'adapter_model.safetensors': fileOf(Object.fromEntries(stored)),
    });
    await expect(merge(linear(['base+lora', 'base']), files, [adapter])).rejects.toMatchObject({
      code: 'NonFinite',
      message: expect.stringContaining(`${key(part)} of lora`),
    });
  });
});

describe('R23: nothing to change', () => {
  // a signed zero, a large and a small number, odd mantissas; f32 subnormals count as zero (docs/numbers.md)
  const words = [0x8000_0000, 0x7e7f_ffff, 0x3f80_0001, 0x0100_0003, 0xbf7f_ffff, 0x3eaa_aaab];
  const bytes = new Uint8Array(Uint32Array.from(words).buffer);
  const other = f32(1, 2, 3, 4, 5, 6);
  const file = (data: Uint8Array) => fileOf({ w: { dtype: 'F32', shape: [6], bytes: data } });
  test('equal models give their own bytes', async () => {
    const merged = await merge(linear(['a', 'b', 'c']), { a: file(bytes), b: file(bytes), c: file(bytes) });
    expect([...merged.bytes('w')]).toEqual([...bytes]);
  });
  test('weights 1 and 0 give the bytes of the one', async () => {
    const text =
      'merge_method: linear\nmodels:\n  - {model: a, parameters: {weight: 1}}\n  - {model: b, parameters: {weight: 0}}\n';
    const merged = await merge(text, { a: file(bytes), b: file(other) });
    expect([...merged.bytes('w')]).toEqual([...bytes]);
  });
});

describe('R24: slerp without an angle', () => {
  const slerp =
    'merge_method: slerp\nbase_model: a\nmodels:\n  - model: a\n  - model: b\nparameters: {t: 0.25}\n';
  const file = (...data: number[]) =>
    fileOf({ w: { dtype: 'F32', shape: [data.length], bytes: f32(...data) } });
  test.each([
    ['parallel: lerp', [1, 2], [2, 4], [1.25, 2.5]],
    ['antiparallel: lerp', [1, 2], [-1, -2], [0.5, 1]],
    // mergekit takes the angle to a zero vector as a right one: sin(t·π/2) of the other
    ['one is zero', [0, 0], [4, 8], [4 * Math.sin(Math.PI / 8), 8 * Math.sin(Math.PI / 8)]],
    ['both are zero', [0, 0], [0, 0], [0, 0]],
  ])('%s', async (_, a, b, expected) => {
    const merged = await merge(slerp, { a: file(...a), b: file(...b) });
    for (const [i, value] of values(merged.bytes('w')).entries()) expect(value).toBeCloseTo(expected[i]!, 6);
  });
});
