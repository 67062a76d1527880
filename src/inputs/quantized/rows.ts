/**
 * Codes in rows, a scale for each group of a row. compressed-tensors (compressors/quantized_compressors): `x.weight_packed` [rows,
 * columns·bits/32], codes and zero points 2^(bits−1) above their value, w = (q − z) · s; or `x.weight` of eight bits with
 * `x.weight_scale`. MLX (mlx.core.quantize, affine): `x.weight` [rows, columns·bits/32], w = q · `x.scales` + `x.biases`.
 */
import { AmalgamError } from '../../errors';
import { counted } from '../../formats/quantity';
import { isJsonNumber } from '../../formats/strict-json';
import { readF32 } from '../stored-tensor';
import type { TensorRef } from '../tensor-view';
import {
  bitsAt,
  byRows,
  evenGroups,
  numberIn,
  type QuantizedCheckpoint,
  type QuantizedFormat,
  wholeOf,
  wordsOf,
} from './format';

const BITS = [2, 3, 4, 5, 6, 8];

export const packed: QuantizedFormat = {
  find(name, ref, { tensors, settings }) {
    if (!name.endsWith('.weight_packed') || ref.dtype !== 'I32' || ref.shape.length !== 2) return undefined;
    const plain = name.slice(0, -'_packed'.length);
    const scale = tensors.get(`${plain}_scale`);
    const bits = packedBits(settings);
    if (bits === undefined || 32 % bits !== 0) return undefined;
    const [rows, words] = ref.shape as [number, number];
    const columns = (words * 32) / bits;
    const groups = scale?.shape[1] ?? 1;
    if (!scale || scale.shape[0] !== rows || columns % groups !== 0) return 'unscaled';
    const [zero, index] = [tensors.get(`${plain}_zero_point`), tensors.get(`${plain}_g_idx`)];
    const isZero =
      zero?.dtype === 'I32' && zero.shape[1] === groups && zero.shape[0] === Math.ceil((rows * bits) / 32);
    if (zero && !isZero) return 'unscaled';
    if (index && (index.dtype !== 'I32' || index.shape[0] !== columns)) return 'unscaled';
    const whole = tensors.get(`${plain}_shape`);
    return {
      ...{ name: plain, format: `compressed-tensors (${bits} bits)`, shape: [rows, columns] },
      from: [ref, scale, ...[zero, index, whole].filter((part) => part !== undefined)],
      params: { bits, columns, groups },
    };
  },
  async open([ref, scale, ...more], params, read) {
    const { bits, columns, groups } = params as Record<'bits' | 'columns' | 'groups', number>;
    const wordsAt = async (end: string) => {
      const part = more.find(({ key }) => key.endsWith(end));
      return part && wordsOf(await wholeOf(part, read));
    };
    const [scales, zeros, index, shape] = await Promise.all([
      readF32(scale!, read),
      ...['_zero_point', '_g_idx', '_shape'].map(wordsAt),
    ]);
    requireColumns(ref!, shape, columns);
    // rows of groups that follow each other are filled with −1
    const groupOf = index?.includes(0xffffffff) === false ? index : evenGroups(columns, groups);
    const [width, middle] = [(columns * bits) / 32, 2 ** (bits - 1)];
    return byRows(columns, async (first, end) => {
      const codes = wordsOf(await read(ref!, first * width * 4, end * width * 4));
      const out = new Float32Array((end - first) * columns);
      for (let row = first; row < end; row++) {
        for (let c = 0; c < columns; c++) {
          const group = groupOf[c]!;
          // zero points are packed down the rows
          const zero = zeros ? bitsAt(zeros, group, groups, bits, row) : middle;
          const code = bitsAt(codes, (row - first) * width, 1, bits, c);
          out[(row - first) * columns + c] = (code - zero) * scales[row * groups + group]!;
        }
      }
      return out;
    });
  },
};

/** @param shape [rows, columns] of 64 bits each @throws AmalgamError `ShapeMismatch` for rows that are filled up to whole words */
function requireColumns({ key }: TensorRef, shape: Uint32Array | undefined, columns: number): void {
  if (!shape || shape[2] === columns) return;
  throw new AmalgamError(
    'ShapeMismatch',
    `${key} has ${counted(shape[2]!, 'column')}, stored as ${columns}.`,
    'Rows that are filled up are not read. Use the model that it was quantized from.',
  );
}

/** `num_bits` of the weights in `config_groups`, where all have the same, whole numbers. */
function packedBits(settings: QuantizedCheckpoint['settings']): number | undefined {
  const groups = settings.get('config_groups');
  const found = new Set<number>();
  for (const group of groups instanceof Map ? groups.values() : []) {
    const weights = group instanceof Map ? group.get('weights') : undefined;
    if (!(weights instanceof Map) || (weights.get('type') ?? 'int') !== 'int') return undefined;
    const bits = weights.get('num_bits');
    if (isJsonNumber(bits)) found.add(Number(bits.text));
  }
  const [bits] = found;
  return found.size === 1 && BITS.includes(bits!) ? bits : undefined;
}

export const integers: QuantizedFormat = {
  find(name, ref, { tensors }) {
    const scale = tensors.get(`${name}_scale`);
    if (ref.dtype !== 'I8' || ref.shape.length !== 2 || !scale) return undefined;
    const [rows, columns] = ref.shape as [number, number];
    const count = scale.shape.reduce((n, extent) => n * extent, 1);
    const zero = tensors.get(`${name}_zero_point`);
    const groups = count === 1 ? 0 : count / rows;
    const isOne = groups === 0 || (Number.isInteger(groups) && columns % groups === 0);
    if (!isOne || (zero && (zero.dtype !== 'I8' || `${zero.shape}` !== `${scale.shape}`))) return 'unscaled';
    return {
      ...{ name, format: 'compressed-tensors (8 bits)', shape: ref.shape },
      ...{ from: [ref, scale, ...(zero ? [zero] : [])], params: { columns, groups } },
    };
  },
  async open([ref, scale, zero], params, read) {
    const { columns, groups } = params as Record<'columns' | 'groups', number>;
    const scales = await readF32(scale!, read);
    const zeros = zero ? new Int8Array(await wholeOf(zero, read)) : undefined;
    const groupOf = evenGroups(columns, Math.max(1, groups));
    return byRows(columns, async (first, end) => {
      const codes = new Int8Array(await read(ref!, first * columns, end * columns));
      return Float32Array.from(codes, (code, i) => {
        const at = (first + Math.floor(i / columns)) * groups + (groups && groupOf[i % columns]!);
        return (code - (zeros?.[at] ?? 0)) * scales[at]!;
      });
    });
  },
};

export const mlx: QuantizedFormat = {
  find(name, ref, { tensors, settings }) {
    if (ref.dtype !== 'U32' || !name.endsWith('.weight')) return undefined;
    const module = name.slice(0, -'.weight'.length);
    const [scales, biases] = [tensors.get(`${module}.scales`), tensors.get(`${module}.biases`)];
    const own = settings.get(module);
    const size =
      numberIn(own instanceof Map ? own : settings, 'group_size') ?? numberIn(settings, 'group_size') ?? 64;
    if (!scales || !biases) return undefined;
    const groups = scales.shape.at(-1) ?? 1;
    const columns = groups * size;
    const bits = (ref.shape.at(-1)! * 32) / columns;
    const isOne =
      `${scales.shape}` === `${biases.shape}` &&
      `${scales.shape.slice(0, -1)}` === `${ref.shape.slice(0, -1)}`;
    if (!isOne || !BITS.includes(bits)) return 'unscaled';
    return {
      ...{ name, format: `MLX (${bits} bits)`, shape: [...ref.shape.slice(0, -1), columns] },
      ...{ from: [ref, scales, biases], params: { bits, columns, groups } },
    };
  },
  async open([ref, scales, biases], params, read) {
    const { bits, columns, groups } = params as Record<'bits' | 'columns' | 'groups', number>;
    const [factors, shifts] = await Promise.all([readF32(scales!, read), readF32(biases!, read)]);
    const [width, groupOf] = [(columns * bits) / 32, evenGroups(columns, groups)];
    return byRows(columns, async (first, end) => {
      const codes = wordsOf(await read(ref!, first * width * 4, end * width * 4));
      const out = new Float32Array((end - first) * columns);
      for (let row = first; row < end; row++) {
        for (let c = 0; c < columns; c++) {
          const group = row * groups + groupOf[c]!;
          const code = bitsAt(codes, (row - first) * width, 1, bits, c);
          out[(row - first) * columns + c] = code * factors[group]! + shifts[group]!;
        }
      }
      return out;
    });
  },
};
