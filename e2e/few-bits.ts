/** The base of the sample with its linear weights in four bits, packed here as each format's authors say. */

import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { f32ToF16 } from '../src/formats/half';
import { SAMPLES } from './disk-folder';
import { readSafetensors } from './journeys/merged-folder';

interface Part {
  dtype: string;
  shape: number[];
  bytes: Uint8Array;
}

interface Packed {
  /** By what follows the module's path. */
  parts: Record<string, Part>;
  /** What a reader gets: [outputs, inputs]. */
  values: Float32Array;
}

const part = (dtype: string, shape: number[], { buffer }: { buffer: ArrayBufferLike }): Part => ({
  ...{ dtype, shape },
  bytes: new Uint8Array(buffer),
});

/** Elements that share a scale. */
const GROUP = 32;

/** MLX: the words of a row from its lowest bits on, scale and bias of a group. */
function mlx(rows: number, columns: number, stored: Float32Array): Packed {
  const groups = columns / GROUP;
  const [scales, biases] = [new Float32Array(rows * groups), new Float32Array(rows * groups)];
  const words = new Uint32Array((rows * columns) / 8);
  const values = stored.map((value, i) => {
    const group = Math.floor(i / GROUP);
    if (i % GROUP === 0) {
      const all = stored.subarray(i, i + GROUP);
      biases[group] = Math.min(...all);
      scales[group] = (Math.max(...all) - biases[group]!) / 15;
    }
    const code = Math.min(15, Math.max(0, Math.round((value - biases[group]!) / scales[group]!)));
    words[i >> 3]! |= code << (4 * (i & 7));
    return code * scales[group]! + biases[group]!;
  });
  const parts = {
    weight: part('U32', [rows, columns / 8], words),
    scales: part('F32', [rows, groups], scales),
    biases: part('F32', [rows, groups], biases),
  };
  return { parts, values };
}

/** The levels of NF4 (Dettmers et al. 2023, `bitsandbytes/functional.py`). */
const LEVELS = Float32Array.of(
  ...[-1, -0.6961928, -0.52507305, -0.3949175, -0.28444138, -0.18477343, -0.09105004, 0],
  ...[0.0795803, 0.1609302, 0.2461123, 0.33791524, 0.44070983, 0.562617, 0.72295684, 1],
);

/** bitsandbytes: the nearest level of NF4 times the largest magnitude of 64, the first of two in the upper half of a byte. */
function nf4(rows: number, columns: number, stored: Float32Array): Packed {
  const block = 64;
  const absmax = new Float32Array(Math.ceil(stored.length / block));
  const bytes = new Uint8Array(stored.length / 2);
  const values = stored.map((value, i) => {
    const of = Math.floor(i / block);
    if (i % block === 0)
      absmax[of] = stored.subarray(i, i + block).reduce((most, v) => Math.max(most, Math.abs(v)), 0);
    const wanted = value / absmax[of]!;
    const code = LEVELS.reduce(
      (best, level, at) => (Math.abs(level - wanted) < Math.abs(LEVELS[best]! - wanted) ? at : best),
      0,
    );
    bytes[i >> 1]! |= code << (i % 2 === 0 ? 4 : 0);
    return LEVELS[code]! * absmax[of]!;
  });
  const state = { quant_type: 'nf4', blocksize: block, dtype: 'bfloat16', shape: [rows, columns] };
  const text = new TextEncoder().encode(JSON.stringify(state));
  const parts = {
    weight: part('U8', [bytes.length, 1], bytes),
    'weight.absmax': part('F32', [absmax.length], absmax),
    'weight.quant_map': part('F32', [16], LEVELS),
    'weight.quant_state.bitsandbytes__nf4': { dtype: 'U8', shape: [text.length], bytes: text },
  };
  return { parts, values };
}

/** AWQ: words of eight outputs, the even ones first, for each input; zero points and scales of a group of inputs. */
function awq(rows: number, columns: number, stored: Float32Array): Packed {
  const groups = columns / GROUP;
  const codes = new Uint8Array(rows * columns);
  const zeros = new Uint8Array(rows * groups);
  const scales = new Float32Array(rows * groups);
  const values = stored.map((value, i) => {
    const group = Math.floor(i / GROUP);
    if (i % GROUP === 0) {
      const all = stored.subarray(i, i + GROUP);
      const [low, high] = [Math.min(0, ...all), Math.max(0, ...all)];
      scales[group] = f16((high - low) / 15);
      zeros[group] = Math.round(-low / scales[group]!);
    }
    codes[i] = Math.min(15, Math.max(0, Math.round(value / scales[group]!) + zeros[group]!));
    return (codes[i]! - zeros[group]!) * scales[group]!;
  });
  const words = (of: number, at: (row: number, column: number) => number) => {
    const out = new Int32Array((of * rows) / 8);
    for (let column = 0; column < of; column++)
      for (let word = 0; word < rows / 8; word++)
        for (const [i, from] of [0, 2, 4, 6, 1, 3, 5, 7].entries())
          out[(column * rows) / 8 + word]! |= at(8 * word + from, column) << (4 * i);
    return out;
  };
  const halves = new Uint16Array(rows * groups);
  for (let row = 0; row < rows; row++)
    for (let group = 0; group < groups; group++)
      halves[group * rows + row] = halfOf(scales[row * groups + group]!);
  const parts = {
    qweight: part(
      'I32',
      [columns, rows / 8],
      words(columns, (row, column) => codes[row * columns + column]!),
    ),
    qzeros: part(
      'I32',
      [groups, rows / 8],
      words(groups, (row, group) => zeros[row * groups + group]!),
    ),
    scales: part('F16', [groups, rows], halves),
  };
  return { parts, values };
}

const halfOf = (value: number) => f32ToF16(new Uint32Array(Float32Array.of(value).buffer)[0]!);

/** Rounded to binary16. */
function f16(value: number): number {
  const bits = halfOf(value);
  const exponent = (bits >> 10) & 31;
  const fraction = bits & 1023;
  return exponent === 0 ? fraction * 2 ** -24 : (1 + fraction / 1024) * 2 ** (exponent - 15);
}

const FORMATS = {
  mlx: { pack: mlx, config: { quantization: { group_size: GROUP, bits: 4 } } },
  nf4: { pack: nf4, config: { quantization_config: { quant_method: 'bitsandbytes', load_in_4bit: true } } },
  awq: {
    pack: awq,
    config: { quantization_config: { quant_method: 'awq', bits: 4, version: 'gemm', group_size: GROUP } },
  },
};

/**
 * Writes it as a folder.
 * @returns the values of the linear weights as they are read, row after row
 */
export function fewBitsBase(
  folder: string,
  format: keyof typeof FORMATS,
): Map<string, { columns: number; values: Float32Array }> {
  const { pack, config } = FORMATS[format];
  const stored = new Map<string, Part>();
  const weights = new Map<string, { columns: number; values: Float32Array }>();
  const { tensors } = readSafetensors(readFileSync(join(SAMPLES, 'base/model.safetensors')));
  for (const [name, { shape, values }] of tensors) {
    const floats = Float32Array.from(values);
    if (!name.includes('proj')) {
      stored.set(name, part('F32', shape, floats));
      continue;
    }
    const [rows, columns] = shape as [number, number];
    const packed = pack(rows, columns, floats);
    weights.set(name, { columns, values: packed.values });
    for (const [kind, each] of Object.entries(packed.parts)) stored.set(name.replace(/weight$/, kind), each);
  }
  mkdirSync(folder, { recursive: true });
  let end = 0;
  const header = [...stored].map(([name, { dtype, shape, bytes }]) => {
    end += bytes.length;
    return [name, { dtype, shape, data_offsets: [end - bytes.length, end] }] as const;
  });
  const text = Buffer.from(JSON.stringify(Object.fromEntries(header)));
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(text.length));
  const bytes = [...stored.values()].map((each) => each.bytes);
  writeFileSync(join(folder, 'model.safetensors'), Buffer.concat([length, text, ...bytes]));
  const plain = JSON.parse(readFileSync(join(SAMPLES, 'base/config.json'), 'utf8'));
  writeFileSync(join(folder, 'config.json'), JSON.stringify({ ...plain, ...config }));
  copyFileSync(join(SAMPLES, 'base/tokenizer.json'), join(folder, 'tokenizer.json'));
  return weights;
}
