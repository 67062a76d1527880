/**
 * FP8 (OCP 8-bit Floating Point, E4M3 and E5M2): w = value · scale, one scale a tensor, a row or a block of `weight_block_size`;
 * beside `x.weight` in `x.weight_scale_inv` (DeepSeek, Qwen, Mistral; transformers integrations/finegrained_fp8.py) or
 * `x.weight_scale` (compressed-tensors, fbgemm).
 */
import { isJsonNumber } from '../../formats/strict-json';
import { eightBitValues, scaleNames } from '../dequantization';
import { readF32 } from '../stored-tensor';
import type { ReadTensor, TensorRef } from '../tensor-view';
import type { QuantizedCheckpoint, QuantizedFormat } from './format';

export const fp8: QuantizedFormat = {
  find(name, ref, { tensors, settings }) {
    if (ref.dtype !== 'F8_E4M3' && ref.dtype !== 'F8_E5M2') return undefined;
    const scale = scaleNames(name)
      .map((key) => tensors.get(key))
      .find((found) => found !== undefined);
    const block = blockSize(settings);
    // without scales it is not known what the values stand for
    if (!scale || !fits(ref.shape, scale.shape, block)) return 'unscaled';
    const [rows, columns] = [ref.shape.at(-2) ?? 1, ref.shape.at(-1) ?? 1];
    const [experts, scaleRows, scaleColumns] = scaleGrid(ref.shape, scale.shape);
    const step = (all: number, count: number, size: number) => (count === 1 ? all : count === all ? 1 : size);
    return {
      ...{ name, format: 'FP8', shape: ref.shape, from: [ref, scale] },
      params: {
        ...{ rows, columns, experts, scaleRows, scaleColumns },
        rowStep: step(rows, scaleRows, block[0]),
        columnStep: step(columns, scaleColumns, block[1]),
      },
    };
  },
  async open([ref, scale], params, read) {
    const { rows, columns, experts, scaleRows, scaleColumns, rowStep, columnStep } = params as Grid;
    const values = eightBitValues(ref!.dtype);
    const factors = await scaleValues(scale!, read);
    return async (begin, end) => {
      const bytes = await read(ref!, begin, end);
      const out = new Float32Array(end - begin);
      for (let i = 0; i < out.length; i++) {
        const at = begin + i;
        const row = Math.floor(at / columns);
        const expert = experts === 1 ? 0 : Math.floor(row / rows);
        const line = expert * scaleRows + Math.floor((row % rows) / rowStep);
        out[i] = values[bytes[i]!]! * factors[line * scaleColumns + Math.floor((at % columns) / columnStep)]!;
      }
      return out;
    };
  },
};

type Grid = Record<
  'rows' | 'columns' | 'experts' | 'scaleRows' | 'scaleColumns' | 'rowStep' | 'columnStep',
  number
>;

/** `weight_block_size`: rows and columns with a scale of their own. */
function blockSize(settings: QuantizedCheckpoint['settings']): readonly [number, number] {
  const list = settings.get('weight_block_size');
  const [rows, columns] = Array.isArray(list) ? list.map((v) => (isJsonNumber(v) ? Number(v.text) : 0)) : [];
  return rows && columns ? [rows, columns] : [128, 128];
}

/** The shape of scales as [experts, rows, columns] of them; 1 for what all have in common. */
function scaleGrid(shape: readonly number[], scale: readonly number[]): [number, number, number] {
  const [experts = 1, ...inner] = shape.length === 3 ? scale : [1, ...scale];
  const [rows = 1, columns = 1] = inner;
  return [experts, rows, columns];
}

function fits(
  shape: readonly number[],
  scale: readonly number[],
  [blockRows, blockColumns]: readonly [number, number],
): boolean {
  const [experts, rows, columns] = [shape.length === 3 ? shape[0]! : 1, shape.at(-2) ?? 1, shape.at(-1) ?? 1];
  const [e, r, c] = scaleGrid(shape, scale);
  const isOne = (n: number, all: number, block: number) =>
    n === 1 || n === all || n === Math.ceil(all / block);
  return (
    shape.length <= 3 &&
    scale.length <= shape.length &&
    (e === 1 || e === experts) &&
    isOne(r, rows, blockRows) &&
    isOne(c, columns, blockColumns)
  );
}

/** Scales are weights, or powers of two of eight bits (E8M0). */
async function scaleValues(scale: TensorRef, read: ReadTensor): Promise<Float32Array> {
  if (scale.dtype !== 'F8_E8M0') return readF32(scale, read);
  const bytes = await read(scale, 0, scale.end - scale.begin);
  return Float32Array.from(bytes, (b) => (b === 255 ? Number.NaN : 2 ** (b - 127)));
}
