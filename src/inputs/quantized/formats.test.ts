/** Each format against codes, scales and zero points that are packed here as its authors say, bit by bit. */
import { describe, expect, test } from 'vitest';
import { methodById } from '../../merge/methods';
import { makePlan } from '../../merge/plan/recipe-plan';
import type { Checkpoint } from '../checkpoint';
import { openerOf, recipeOf } from '../memory-models.test.support';
import { openModel } from '../opened-model';
import { readingRows } from '../row-reader';
import {
  below,
  bitString,
  f32,
  folderOf,
  halves,
  ints,
  random,
  rowsOf,
  type Stored,
  transposed,
} from './packing.test.support';

/** Tensors as they are read: in one piece, and in pieces that begin and end anywhere. */
async function readAll(tensors: Record<string, Stored>, config: object) {
  const folder = folderOf('a', tensors, config);
  const { dequantized } = (await openModel(folder)) as Checkpoint;
  const { tensors: found, formats, unscaled } = dequantized;
  const source = folder.files.find(({ path }) => path === 'model.safetensors')!.open();
  const read = readingRows((ref, begin, end) => source.read(ref.begin + begin, ref.begin + end));
  const values = new Map<string, number[]>();
  for (const [name, ref] of found) {
    if (!ref.derived) continue;
    const elements = ref.shape.reduce((a, b) => a * b, 1);
    const part = async (begin: number, end: number) => [
      ...new Float32Array((await read(ref, 4 * begin, 4 * end)).slice().buffer),
    ];
    const whole = await part(0, elements);
    const cuts = [0, 1, 7, Math.floor(elements / 2) + 1, elements - 1, elements];
    const pieces = await Promise.all(cuts.slice(1).map((end, i) => part(cuts[i]!, end)));
    expect(pieces.flat()).toEqual(whole);
    values.set(name, whole);
  }
  return { names: [...found.keys()].sort(), shapes: found, values, formats: [...formats], unscaled };
}

const norm = { norm: f32([2], [1, 2]) };
const fround = Math.fround;

describe('bitsandbytes', () => {
  const MAP = [-1, -0.6961928, -0.52507305, -0.3949175, -0.28444138, -0.18477343, -0.09105004, 0].concat([
    0.0795803, 0.1609302, 0.2461123, 0.33791524, 0.44070983, 0.562617, 0.72295684, 1,
  ]);
  const [rows, columns, block] = [6, 22, 64];
  const codes = below(rows * columns, 4, 1);
  const blocks = Math.ceil((rows * columns) / block);
  const bytes = Uint8Array.from(
    { length: codes.length / 2 },
    (_, i) => 16 * codes[2 * i]! + codes[2 * i + 1]!,
  );
  const state = (more: object) => {
    const json = JSON.stringify({
      quant_type: 'nf4',
      blocksize: block,
      dtype: 'bfloat16',
      shape: [rows, columns],
      ...more,
    });
    const text = new TextEncoder().encode(json);
    return { dtype: 'U8', shape: [text.length], bytes: text } as Stored;
  };
  const weight: Stored = { dtype: 'U8', shape: [bytes.length, 1], bytes };
  const config = { quantization_config: { quant_method: 'bitsandbytes', load_in_4bit: true } };

  test('NF4: the upper half of a byte first, a magnitude for 64', async () => {
    const absmax = random(blocks, 2).map((b) => fround(b / 97));
    const read = await readAll(
      {
        ...norm,
        'w.weight': weight,
        'w.weight.absmax': f32([blocks], absmax),
        'w.weight.quant_map': f32([16], MAP),
        'w.weight.quant_state.bitsandbytes__nf4': state({}),
      },
      config,
    );
    expect([read.names, read.formats]).toEqual([['norm', 'w.weight'], ['NF4']]);
    expect(read.shapes.get('w.weight')!.shape).toEqual([rows, columns]);
    expect(read.values.get('w.weight')).toEqual(
      codes.map((code, i) => fround(fround(MAP[code]!) * absmax[Math.floor(i / block)]!)),
    );
  });

  test('NF4 with magnitudes in eight bits', async () => {
    const offset = 0.0436;
    const nestedMap = Array.from({ length: 256 }, (_, i) => fround(i / 300 - 0.4));
    const [small, outer] = [random(blocks, 3), [fround(0.37)]];
    const read = await readAll(
      {
        'w.weight': weight,
        'w.weight.absmax': { dtype: 'U8', shape: [blocks], bytes: Uint8Array.from(small) },
        'w.weight.quant_map': f32([16], MAP),
        'w.weight.nested_absmax': f32([1], outer),
        'w.weight.nested_quant_map': f32([256], nestedMap),
        'w.weight.quant_state.bitsandbytes__nf4': state({ nested_blocksize: 256, nested_offset: offset }),
      },
      config,
    );
    const absmax = small.map((code) => fround(fround(nestedMap[code]! * outer[0]!) + fround(offset)));
    expect(read.names).toEqual(['w.weight']);
    expect(read.values.get('w.weight')).toEqual(
      codes.map((code, i) => fround(fround(MAP[code]!) * absmax[Math.floor(i / block)]!)),
    );
  });

  test('eight bits: a scale for each row, of 127', async () => {
    const values = random(15, 4).map((b) => b - 128);
    const scales = [1, 2.5, 7];
    const read = await readAll(
      {
        'w.weight': { dtype: 'I8', shape: [3, 5], bytes: new Uint8Array(Int8Array.from(values).buffer) },
        'w.SCB': f32([3], scales),
      },
      { quantization_config: { quant_method: 'bitsandbytes', load_in_8bit: true } },
    );
    expect([read.names, read.formats]).toEqual([['w.weight'], ['INT8 of bitsandbytes']]);
    expect(read.values.get('w.weight')).toEqual(
      values.map((q, i) => fround((q * scales[Math.floor(i / 5)]!) / 127)),
    );
  });

  test('a state that says nothing leaves the model refused', async () => {
    const odd = { ...weight, bytes: bytes };
    const tensors = {
      'w.weight': odd,
      'w.weight.absmax': f32([blocks], random(blocks, 5)),
      'w.weight.quant_map': f32([16], MAP),
      'w.weight.quant_state.bitsandbytes__nf4': {
        dtype: 'U8',
        shape: [3],
        bytes: Uint8Array.of(65, 65, 65),
      } as Stored,
    };
    const plan = await makePlan(
      recipeOf(['a'], { mergeMethod: 'linear' }),
      openerOf(folderOf('a', tensors, config), folderOf('base', norm, {})),
      methodById,
    );
    expect(plan.problems.map(({ code }) => code)).toContain('Quantized');
  });
});

describe.each([2, 3, 4, 8])('GPTQ of %i bits', (bits) => {
  const [inputs, outputs, groups] = [64, 32, 4];
  const codes = rowsOf(below(inputs * outputs, bits, 10 + bits), outputs);
  const zeros = rowsOf(below(groups * outputs, bits, 20), outputs);
  const scales = halves([groups, outputs], 21);
  const order = Array.from({ length: inputs }, (_, i) => (i * 7) % groups);
  const qweight = transposed(transposed(codes).map((column) => [...bitString(column, bits)])).flat();
  const stored = (zero: number[][]) => ({
    'w.qweight': ints([(inputs * bits) / 32, outputs], qweight),
    'w.qzeros': ints(
      [groups, (outputs * bits) / 32],
      zero.flatMap((row) => [...bitString(row, bits)]),
    ),
    'w.scales': scales.stored,
    'w.bias': f32([outputs], random(outputs, 22)),
  });
  const expected = (groupOf: (i: number) => number, zero: (g: number, o: number) => number) =>
    Array.from({ length: outputs * inputs }, (_, at) => {
      const [o, i] = [Math.floor(at / inputs), at % inputs];
      const g = groupOf(i);
      return fround((codes[i]![o]! - zero(g, o)) * scales.values[g * outputs + o]!);
    });

  test('zero points are stored one less; act-order by g_idx', async () => {
    const less = zeros.map((row) => row.map((zero) => (zero + 2 ** bits - 1) % 2 ** bits));
    const read = await readAll(
      { ...stored(less), 'w.g_idx': ints([inputs], order) },
      { quantization_config: { quant_method: 'gptq', bits, group_size: inputs / groups, desc_act: true } },
    );
    expect([read.names, read.formats]).toEqual([['w.bias', 'w.weight'], [`GPTQ (${bits} bits)`]]);
    expect(read.shapes.get('w.weight')!.shape).toEqual([outputs, inputs]);
    expect(read.values.get('w.weight')).toEqual(
      expected(
        (i) => order[i]!,
        (g, o) => zeros[g]![o]!,
      ),
    );
  });

  test('gptq_v2 stores them as they are; groups follow each other; a folder of before has no config of it', async () => {
    const inTurn = (i: number) => Math.floor(i / (inputs / groups));
    // the config says what most modules have: this one may have another number of bits
    const v2 = await readAll(stored(zeros), {
      quantization_config: { quant_method: 'gptq', bits: 12 - bits, checkpoint_format: 'gptq_v2' },
    });
    expect(v2.values.get('w.weight')).toEqual(expected(inTurn, (g, o) => zeros[g]![o]!));
    const old = await readAll(stored(zeros), {});
    expect(old.values.get('w.weight')).toEqual(expected(inTurn, (g, o) => (zeros[g]![o]! + 1) % 2 ** bits));
  });
});

test('AWQ: of eight outputs in a word the even ones come first', async () => {
  const [inputs, outputs, groups] = [24, 16, 3];
  const codes = rowsOf(below(inputs * outputs, 4, 30), outputs);
  const zeros = rowsOf(below(groups * outputs, 4, 31), outputs);
  const scales = halves([groups, outputs], 32);
  const packRow = (row: number[]) =>
    rowsOf(row, 8).map((eight) =>
      [0, 2, 4, 6, 1, 3, 5, 7].reduce((word, from, i) => word + eight[from]! * 16 ** i, 0),
    );
  const tensors = {
    'w.qweight': ints([inputs, outputs / 8], codes.flatMap(packRow)),
    'w.qzeros': ints([groups, outputs / 8], zeros.flatMap(packRow)),
    'w.scales': scales.stored,
  };
  const awq = (version: string) => ({ quantization_config: { quant_method: 'awq', bits: 4, version } });
  const read = await readAll(tensors, awq('gemm'));
  expect([read.names, read.formats]).toEqual([['w.weight'], ['AWQ (4 bits)']]);
  expect(read.values.get('w.weight')).toEqual(
    Array.from({ length: outputs * inputs }, (_, at) => {
      const [o, i] = [Math.floor(at / inputs), at % inputs];
      const g = Math.floor(i / (inputs / groups));
      return fround((codes[i]![o]! - zeros[g]![o]!) * scales.values[g * outputs + o]!);
    }),
  );
  expect((await readAll(tensors, awq('gemv'))).formats).toEqual([]);
});

describe.each([4, 8])('compressed-tensors in packs of %i bits', (bits) => {
  const [rows, columns, groups] = [8, 32, 4];
  const middle = 2 ** (bits - 1);
  const codes = rowsOf(below(rows * columns, bits, 40), columns);
  const zeros = rowsOf(below(rows * groups, bits, 41), groups);
  const scales = halves([rows, groups], 42);
  const config = {
    quantization_config: {
      quant_method: 'compressed-tensors',
      config_groups: { group_0: { weights: { num_bits: bits, type: 'int', group_size: 8 } } },
    },
  };
  const stored = {
    'w.weight_packed': ints(
      [rows, (columns * bits) / 32],
      codes.flatMap((row) => [...bitString(row, bits)]),
    ),
    'w.weight_scale': scales.stored,
    'w.weight_shape': {
      dtype: 'I64',
      shape: [2],
      bytes: new Uint8Array(BigInt64Array.of(8n, 32n).buffer),
    } as Stored,
  };

  test('symmetric, its codes half their range above their values', async () => {
    const read = await readAll(stored, config);
    expect([read.names, read.formats]).toEqual([['w.weight'], [`compressed-tensors (${bits} bits)`]]);
    expect(read.values.get('w.weight')).toEqual(
      codes.flatMap((row, r) =>
        row.map((code, c) => fround((code - middle) * scales.values[r * groups + Math.floor(c / 8)]!)),
      ),
    );
  });

  test('an index that says nothing, or is none, and rows that are filled up to whole words', async () => {
    const plain = (await readAll(stored, config)).values.get('w.weight');
    const idle = await readAll(
      { ...stored, 'w.weight_g_idx': ints([columns], Array(columns).fill(-1)) },
      config,
    );
    expect(idle.values.get('w.weight')).toEqual(plain);
    const odd = await readAll(
      { ...stored, 'w.weight_g_idx': f32([columns], Array(columns).fill(0)) },
      config,
    );
    expect([odd.formats, odd.unscaled]).toEqual([[], ['w.weight_packed']]);
    const filled = { ...stored['w.weight_shape'], bytes: new Uint8Array(BigInt64Array.of(8n, 31n).buffer) };
    await expect(readAll({ ...stored, 'w.weight_shape': filled }, config)).rejects.toMatchObject({
      code: 'ShapeMismatch',
    });
  });

  test('with zero points, packed down the rows, and groups by g_idx', async () => {
    const packedZeros = transposed(transposed(zeros).map((column) => [...bitString(column, bits)])).flat();
    const order = Array.from({ length: columns }, (_, c) => (c * 3) % groups);
    const read = await readAll(
      {
        ...stored,
        'w.weight_zero_point': ints([(rows * bits) / 32, groups], packedZeros),
        'w.weight_g_idx': ints([columns], order),
      },
      config,
    );
    expect(read.names).toEqual(['w.weight']);
    expect(read.values.get('w.weight')).toEqual(
      codes.flatMap((row, r) =>
        row.map((code, c) => fround((code - zeros[r]![order[c]!]!) * scales.values[r * groups + order[c]!]!)),
      ),
    );
  });
});

test('compressed-tensors in integers: a scale for a row', async () => {
  const values = random(12, 50).map((b) => b - 128);
  const read = await readAll(
    {
      'w.weight': { dtype: 'I8', shape: [3, 4], bytes: new Uint8Array(Int8Array.from(values).buffer) },
      'w.weight_scale': f32([3, 1], [0.5, 3, 0.1]),
    },
    { quantization_config: { quant_method: 'compressed-tensors', format: 'int-quantized' } },
  );
  expect(read.names).toEqual(['w.weight']);
  const scales = [0.5, 3, 0.1].map(fround);
  expect(read.values.get('w.weight')).toEqual(values.map((q, i) => fround(q * scales[Math.floor(i / 4)]!)));
});

test.each([2, 3, 4, 5, 6, 8])('MLX of %i bits: scale and bias for a group of a row', async (bits) => {
  const [rows, columns, groups] = [5, 64, 2];
  const codes = rowsOf(below(rows * columns, bits, 60 + bits), columns);
  const [scales, biases] = [halves([rows, groups], 70), halves([rows, groups], 71)];
  const read = await readAll(
    {
      'w.weight': ints(
        [rows, (columns * bits) / 32],
        codes.flatMap((row) => [...bitString(row, bits)]),
        'U32',
      ),
      'w.scales': scales.stored,
      'w.biases': biases.stored,
      'v.weight': f32([2], [3, 4]),
    },
    { quantization: { group_size: 32, bits } },
  );
  expect([read.names, read.formats]).toEqual([['v.weight', 'w.weight'], [`MLX (${bits} bits)`]]);
  expect(read.values.get('w.weight')).toEqual(
    codes.flatMap((row, r) =>
      row.map((code, c) => {
        const at = r * groups + Math.floor(c / 32);
        return fround(code * scales.values[at]! + biases.values[at]!);
      }),
    ),
  );
});
