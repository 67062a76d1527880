/** Weights of eight bits against Q8_0 as its formula says, and products by them against f64. */
import { describe, expect, test } from 'vitest';
import type { WeightDtype } from '../../formats/dtype';
import { decodeToF32, encodeFromF32 } from '../../formats/half';
import { throughQ8, weightsOf } from '../kernels/eight-bits.test.support';
import { DTYPE_CODE } from '../kernels/encoding';
import { ENCODED_CODE, encodeWeights, matmulPacked, PANEL, panelRowBytes } from '../kernels/matmul';
import { createCpuBackend } from './cpu-backend';
import { openSharedWeights } from './shared-weights';

interface Product {
  rows: number;
  inputs: number;
  outputs: number;
  dtype: WeightDtype;
  add: boolean;
}

async function run(
  { rows, inputs, outputs, dtype, add }: Product,
  x: Float32Array<ArrayBuffer>,
  values = weightsOf(outputs * inputs, 7),
) {
  const engine = createCpuBackend(openSharedWeights(0, () => () => undefined));
  const stored = new Uint8Array(outputs * inputs * (dtype === 'F32' ? 4 : 2));
  encodeFromF32(values, dtype, stored);
  decodeToF32(stored, dtype, values);
  const put = (bytes: ArrayBufferView<ArrayBuffer>, label: string) => {
    const buffer = engine.allocate(bytes.byteLength, label);
    engine.write(buffer, 0, new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength));
    return buffer;
  };
  const panels = Math.ceil(outputs / PANEL) * PANEL;
  const weights = engine.allocateWeights!(panels * panelRowBytes(ENCODED_CODE, inputs), 'weights');
  // in two pieces, as a file is read
  for (const first of outputs > PANEL ? [0, PANEL] : [0]) {
    const count = first === 0 ? Math.min(PANEL, outputs) : outputs - first;
    const rowBytes = stored.length / outputs;
    const rowsBuffer = put(stored.slice(first * rowBytes, (first + count) * rowBytes), 'rows');
    const params = { dtype: DTYPE_CODE[dtype], inputs, outputs: count, first };
    engine.run(encodeWeights, { params, buffers: { raw: rowsBuffer, weights } });
  }
  const bias = weightsOf(outputs, 9);
  const before = weightsOf(rows * outputs, 11);
  const y = put(before.slice(), 'y');
  const shape = { rows, outputs, inputs4: inputs / 4, w_first: 0, x_stride4: inputs / 4, y_stride: outputs };
  engine.run(matmulPacked.Q8, {
    params: { ...shape, y_begin: 0, add: add ? 1 : 0, biased: 1, scale: 0.5 },
    buffers: { weights, x: put(x, 'x'), bias: put(bias, 'bias'), y },
  });
  const [bytes] = await engine.read([{ buffer: y, byteLength: rows * outputs * 4 }]);
  return { y: new Float32Array(bytes!.buffer), weights: throughQ8(values), bias, before };
}

const cases: Product[] = [
  { rows: 1, inputs: 896, outputs: 133, dtype: 'BF16', add: false },
  { rows: 4, inputs: 64, outputs: 40, dtype: 'F16', add: true },
  { rows: 7, inputs: 1024, outputs: 21, dtype: 'F32', add: true },
];

describe('weights of eight bits', () => {
  test.each(cases)('products are within 2^-15 of the largest inputs of f64: %o', async (product) => {
    const { rows, inputs, outputs, add } = product;
    const x = weightsOf(rows * inputs, 3);
    const { y, weights, bias, before } = await run(product, x);
    for (let r = 0; r < rows; r++) {
      for (let o = 0; o < outputs; o++) {
        let sum = 0;
        let bound = 0;
        for (let begin = 0; begin < inputs; begin += 32) {
          const block = x.subarray(r * inputs + begin, r * inputs + begin + 32);
          const most = Math.max(...block.map(Math.abs));
          for (const [i, value] of block.entries()) {
            const w = weights[o * inputs + begin + i]!;
            sum += w * value;
            bound += Math.abs(w) * most;
          }
        }
        const exact = 0.5 * sum + bias[o]! + (add ? before[r * outputs + o]! : 0);
        expect(Math.abs(y[r * outputs + o]! - exact)).toBeLessThan(
          bound * 2 ** -15 + Math.abs(exact) * 2 ** -22,
        );
      }
    }
  });

  test('a row has the same bits whatever runs beside it', async () => {
    const product = { rows: 6, inputs: 256, outputs: 70, dtype: 'BF16', add: false } as const;
    const x = weightsOf(6 * 256, 3);
    const all = await run(product, x);
    for (let r = 0; r < 6; r++) {
      const alone = await run({ ...product, rows: 1 }, x.slice(r * 256, (r + 1) * 256));
      expect([...alone.y]).toEqual([...all.y.subarray(r * 70, (r + 1) * 70)]);
    }
  });

  test('NaN and infinity are in every sum that an input or a weight is in', async () => {
    for (const wrong of [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]) {
      const product = { rows: 1, inputs: 64, outputs: 9, dtype: 'F32', add: false } as const;
      const [x, weights] = [weightsOf(64, 3), weightsOf(9 * 64, 7)];
      weights[70] = wrong;
      const { y: own } = await run(product, x, weights);
      expect([...own].map(Number.isFinite)).toEqual([true, false, ...Array(7).fill(true)]);
      x[40] = wrong;
      const { y } = await run(product, x);
      expect(y.some(Number.isFinite)).toBe(false);
    }
  });
});
