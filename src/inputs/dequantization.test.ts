/** Weights of eight and four bits, merged and compared with loops written for the test. */
import { expect, test } from 'vitest';
import { createCpuBackend } from '../backend/cpu/cpu-backend';
import { philox } from '../backend/philox';
import type { Dtype } from '../formats/dtype';
import { bf16ToF32, f16ToF32, f32ToBf16 } from '../formats/half';
import type { Recipe } from '../formats/recipe';
import { parseRecipe } from '../formats/recipe-yaml';
import { headerLength, parseSafetensorsHeader } from '../formats/safetensors-header';
import { buildSafetensorsHeader } from '../formats/safetensors-write';
import { methodById } from '../merge/methods';
import { makePlan } from '../merge/plan/recipe-plan';
import { finishShards } from '../merge/plan/shards';
import { runPlan } from '../merge/run/run';
import { memoryFolder, openerOf } from './memory-models.test.support';
import { readingRows } from './row-reader';

type Stored = Record<string, { dtype: Dtype; shape: number[]; bytes: Uint8Array }>;

function fileOf(tensors: Stored): Uint8Array<ArrayBuffer> {
  const all = Object.entries(tensors);
  const header = buildSafetensorsHeader(
    all.map(([name, { dtype, shape, bytes }]) => ({ name, dtype, shape, byteLength: bytes.length })),
    {},
  );
  return Uint8Array.from(Buffer.concat([header, ...all.map(([, { bytes }]) => bytes)]));
}

async function merge(recipeText: string, models: Record<string, { tensors: Stored; config: object }>) {
  const { recipe, problems } = parseRecipe(recipeText);
  expect(problems).toEqual([]);
  const files = Object.fromEntries(Object.entries(models).map(([name, m]) => [name, fileOf(m.tensors)]));
  const folders = Object.entries(models).map(([name, { config }]) =>
    memoryFolder(name, { 'model.safetensors': files[name]!, 'config.json': config }),
  );
  const plan = await makePlan(recipe as Recipe, openerOf(...folders), methodById);
  const errors = plan.problems.filter((p) => p.severity === 'error').map((p) => `${p.code}: ${p.message}`);
  if (errors.length > 0) return { errors, plan };
  const pieces: Uint8Array[] = [];
  await runPlan({
    plan,
    shards: finishShards(plan, new Map()),
    engine: createCpuBackend(),
    methods: methodById,
    read: readingRows(async (ref, begin, end) =>
      files[ref.folder]!.slice(ref.begin + begin, ref.begin + end),
    ),
    openShard: async (shard) => {
      pieces.push(shard.header);
      return {
        write: async (bytes) => void pieces.push(bytes.slice()),
        finish: async () => undefined,
        abort() {},
      };
    },
  });
  const file = Uint8Array.from(Buffer.concat(pieces));
  const length = headerLength(file.subarray(0, 8), file.length);
  const { tensors } = parseSafetensorsHeader(file.subarray(8, 8 + length), file.length, 'out');
  const out = new Map(
    [...tensors.values()].map((t) => [
      t.name,
      { dtype: t.dtype, shape: t.shape, bytes: file.slice(t.begin, t.end) },
    ]),
  );
  const config = plan.extras.find(({ path }) => path === 'config.json')!.content as { text: string };
  return { errors, plan, out, config: JSON.parse(config.text) as Record<string, unknown>, text: config.text };
}

const random = (n: number, seed: number): Uint8Array<ArrayBuffer> => {
  const words = new Uint32Array(4);
  return Uint8Array.from({ length: n }, (_, i) => {
    philox(i, 0, seed, 7, words);
    return words[0]! & 0xff;
  });
};
/** Codes of E4M3 that are numbers. */
const fp8 = (n: number, seed: number) => random(n, seed).map((b) => ((b & 0x7f) === 0x7f ? b ^ 1 : b));
const f32 = (values: ArrayLike<number>) => new Uint8Array(Float32Array.from(values).buffer);
const scalesOf = (n: number, seed: number) => Float32Array.from(random(n, seed), (b) => (b + 1) / 100);

/** A number of one sign bit, four of exponent and three of mantissa, by its digits. */
function e4m3(code: number): number {
  const digits = code.toString(2).padStart(8, '0');
  const exponent = Number.parseInt(digits.slice(1, 5), 2);
  const fraction = Number.parseInt(digits.slice(5), 2) / 8;
  return (digits[0] === '1' ? -1 : 1) * (exponent > 0 ? (1 + fraction) * 2 ** (exponent - 7) : fraction / 64);
}
const toBf16 = (value: number) => {
  const word = new Uint32Array(Float32Array.of(value).buffer)[0]!;
  return f32ToBf16(word);
};
const words = (bytes: Uint8Array) => Array.from(new Uint16Array(bytes.slice().buffer));

test('E4M3 by its digits: the largest, the smallest, one', () => {
  expect([0x7e, 0x01, 0x38, 0xb8, 0x08].map(e4m3)).toEqual([448, 2 ** -9, 1, -1, 2 ** -6]);
});

test.each([
  ['blocks', [3, 2], 'w.weight_scale_inv'],
  ['rows', [10, 1], 'w.weight_scale'],
  ['the tensor', [], 'w.weight_scale_inv'],
] as const)('FP8 scaled by %s is what it stands for, and written as BF16', async (_, grid, scaleName) => {
  const [rows, columns] = [10, 6];
  const codes = fp8(rows * columns, 1);
  const count = grid.reduce<number>((a, b) => a * b, 1);
  const scales = scalesOf(count, 2);
  const config = {
    model_type: 'novel',
    torch_dtype: 'bfloat16',
    quantization_config: { quant_method: 'fp8', weight_block_size: [4, 4] },
    hidden_size: 6,
  };
  const tensors: Stored = {
    'w.weight': { dtype: 'F8_E4M3', shape: [rows, columns], bytes: codes },
    [scaleName]: { dtype: 'F32', shape: [...grid], bytes: f32(scales) },
    'w.input_scale': { dtype: 'F32', shape: [1], bytes: f32([3]) },
    norm: { dtype: 'F32', shape: [2], bytes: f32([1, 2]) },
  };
  const made = await merge('merge_method: linear\nmodels:\n  - model: a\n    parameters: {weight: 1}\n', {
    a: { tensors, config },
  });
  expect(made.errors).toEqual([]);
  expect([...made.out!.keys()].sort()).toEqual(['norm', 'w.weight']);
  const wanted = Array.from(codes, (code, i) => {
    const [row, column] = [Math.floor(i / columns), i % columns];
    const scale =
      count === 1
        ? scales[0]!
        : count === rows
          ? scales[row]!
          : scales[Math.floor(row / 4) * 2 + Math.floor(column / 4)]!;
    return toBf16(Math.fround(e4m3(code) * scale));
  });
  expect(made.out!.get('w.weight')).toMatchObject({ dtype: 'BF16', shape: [rows, columns] });
  expect(words(made.out!.get('w.weight')!.bytes)).toEqual(wanted);
  expect(made.config).toEqual({ model_type: 'novel', torch_dtype: 'bfloat16', hidden_size: 6 });
  expect(made.plan.problems.map((p) => p.code)).toContain('Dequantized');
});

test('E5M2 is the upper byte of binary16; two models are merged with each other', async () => {
  const codes = random(64, 3).map((b) => ((b & 0x7c) === 0x7c ? b & 0x83 : b));
  const plain = Float32Array.from(random(64, 4), (b) => b / 16 - 8);
  const made = await merge(
    'merge_method: linear\nmodels:\n  - model: a\n    parameters: {weight: 1}\n  - model: b\n    parameters: {weight: 3}\n',
    {
      a: {
        tensors: {
          'w.weight': { dtype: 'F8_E5M2', shape: [8, 8], bytes: codes },
          'w.weight_scale': { dtype: 'F32', shape: [1], bytes: f32([1]) },
        },
        config: {},
      },
      b: { tensors: { 'w.weight': { dtype: 'F32', shape: [8, 8], bytes: f32(plain) } }, config: {} },
    },
  );
  expect(made.errors).toEqual([]);
  const got = words(made.out!.get('w.weight')!.bytes).map(
    (word) => new Float32Array(Uint32Array.of(bf16ToF32(word)).buffer)[0]!,
  );
  for (const [i, code] of codes.entries()) {
    const value = new Float32Array(Uint32Array.of(f16ToF32(code << 8)).buffer)[0]!;
    const wanted = (value + 3 * plain[i]!) / 4;
    expect(Math.abs(got[i]! - wanted)).toBeLessThanOrEqual(Math.abs(wanted) * 2 ** -8 + 1e-30);
  }
});

test('MXFP4: two values a byte, a power of two for 32 of them, columns before rows', async () => {
  const [experts, rows, groups] = [3, 5, 2];
  const blocks = random(experts * rows * groups * 16, 5);
  const scales = random(experts * rows * groups, 6).map((b) => 120 + (b % 12));
  const tensors: Stored = {
    'mlp.experts.up_proj_blocks': { dtype: 'U8', shape: [experts, rows, groups, 16], bytes: blocks },
    'mlp.experts.up_proj_scales': { dtype: 'U8', shape: [experts, rows, groups], bytes: scales },
    'mlp.experts.up_proj_bias': {
      dtype: 'F32',
      shape: [experts, rows],
      bytes: f32(new Float32Array(experts * rows)),
    },
  };
  const config = { quantization_config: { quant_method: 'mxfp4' }, model_type: 'novel' };
  const made = await merge('merge_method: linear\nmodels:\n  - model: a\n    parameters: {weight: 1}\n', {
    a: { tensors, config },
  });
  expect(made.errors).toEqual([]);
  const { dtype, shape, bytes } = made.out!.get('mlp.experts.up_proj')!;
  expect([dtype, shape]).toEqual(['BF16', [experts, groups * 32, rows]]);
  const digits = [0, 0.5, 1, 1.5, 2, 3, 4, 6];
  const got = words(bytes);
  for (let e = 0; e < experts; e++) {
    for (let row = 0; row < rows; row++) {
      for (let column = 0; column < groups * 32; column++) {
        const group = (e * rows + row) * groups + Math.floor(column / 32);
        const byte = blocks[group * 16 + Math.floor((column % 32) / 2)]!;
        const code = column % 2 === 0 ? byte % 16 : Math.floor(byte / 16);
        const value = (code >= 8 ? -1 : 1) * digits[code % 8]! * 2 ** (scales[group]! - 127);
        expect(got[(e * groups * 32 + column) * rows + row]).toBe(toBf16(value));
      }
    }
  }
  expect(made.config).toEqual({ model_type: 'novel', torch_dtype: 'bfloat16' });
});

test('integers in packs stay refused by name', async () => {
  const made = await merge('merge_method: linear\nmodels:\n  - model: a\n    parameters: {weight: 1}\n', {
    a: {
      tensors: { 'w.qweight': { dtype: 'I32', shape: [2, 2], bytes: new Uint8Array(16) } },
      config: { quantization_config: { quant_method: 'gptq' } },
    },
  });
  expect(made.errors.join()).toMatch(/Quantized.*gptq/);
});

test('karcher: single numbers of opposite signs have a mean', async () => {
  const scalar = (value: number) => ({
    tensors: { s: { dtype: 'F32' as const, shape: [1], bytes: f32([value]) } },
    config: {},
  });
  const made = await merge('merge_method: karcher\nmodels:\n  - model: a\n  - model: b\n', {
    a: scalar(1),
    b: scalar(-3),
  });
  expect(made.errors).toEqual([]);
  expect(new Float32Array(made.out!.get('s')!.bytes.slice().buffer)[0]).toBe(-1);
});
