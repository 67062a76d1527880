/** Weights of eight bits on the graphics device: encoded there, and products by them, against Q8_0 as its formula says. */
import { describe, expect, test } from 'vitest';
import type { WeightDtype } from '../../formats/dtype';
import { decodeToF32 } from '../../formats/half';
import type { Kernel } from '../kernel';
import { throughQ8, weightsOf } from './eight-bits.test.support';
import { DTYPE_CODE } from './encoding';
import { floats, packed, tolerance } from './forward-kernels.test.fixture';
import { sharedGpu } from './kernels.test.support';
import { ENCODED_BLOCK, encodeWeights, matmul, matmulFew } from './matmul';

const gpu = await sharedGpu();
const put = (bytes: ArrayBufferView<ArrayBuffer>, label: string) => {
  const buffer = gpu.allocate(Math.ceil(bytes.byteLength / 16) * 16, label);
  gpu.write(buffer, 0, new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength));
  return buffer;
};

/** Rows encoded on the device in two pieces, as a file is read, and what they stand for. */
function encoded(values: Float32Array<ArrayBuffer>, dtype: WeightDtype, inputs: number) {
  const stored = packed(values, dtype);
  const outputs = values.length / inputs;
  const weights = gpu.allocate((values.length / ENCODED_BLOCK.inputs) * ENCODED_BLOCK.deviceBytes, 'weights');
  const half = outputs >> 1;
  for (const [first, count] of [
    [0, half],
    [half, outputs - half],
  ] as const) {
    const rowBytes = stored.length / outputs;
    const raw = put(stored.slice(first * rowBytes, (first + count) * rowBytes), 'raw');
    const params = { dtype: DTYPE_CODE[dtype], inputs, outputs: count, first };
    gpu.run(encodeWeights, { params, buffers: { raw, weights } });
  }
  const wide = new Float32Array(values.length);
  decodeToF32(stored, dtype, wide);
  return { weights, stood: throughQ8(wide) };
}

describe.each(['F32', 'F16', 'BF16'] as const)('%s at eight bits', (dtype) => {
  test.each([
    ['block', matmul.block.Q8, 9],
    ['tile', matmul.tile.Q8, 66],
    ['line', matmulFew.line.Q8, 2],
    ['vector', matmulFew.vector.Q8, 3],
  ] as const)('%s', async (_, kernel, rows) => {
    const [inputs, outputs, first] = [96, 37, 3];
    const { weights, stood } = encoded(weightsOf((first + outputs) * inputs, 7), dtype, inputs);
    const [x, bias] = [floats(rows * inputs, 1), floats(first + outputs, 3)];
    const y = put(new Float32Array(rows * outputs), 'y');
    const shape = { rows, outputs, inputs4: inputs / 4, w_first: first, x_stride4: inputs / 4 };
    const params = { ...shape, y_stride: outputs, y_begin: 0, add: 0, biased: 1, scale: 0.5 };
    const few = {
      norm_kind: 0,
      gate: 0,
      layers: 0,
      second: 0,
      third: 0,
      rank4: 0,
      summands: 1,
      w_step: 0,
      epsilon: 0,
      update_scale: 0,
    };
    const nothing = put(new Float32Array(4), 'nothing');
    const others = { norm: nothing, narrow: nothing, out_of: nothing };
    gpu.run(kernel as unknown as Kernel, {
      params: { ...params, ...few },
      buffers: { weights, x: put(x, 'x'), bias: put(bias, 'bias'), y, ...others },
    });
    const [bytes] = await gpu.read([{ buffer: y, byteLength: rows * outputs * 4 }]);
    const got = new Float32Array(bytes!.buffer);
    const wanted = Float64Array.from({ length: rows * outputs }, (_, at) => {
      const [r, o] = [Math.floor(at / outputs), first + (at % outputs)];
      let sum = 0;
      for (let k = 0; k < inputs; k++) sum += x[r * inputs + k]! * stood[o * inputs + k]!;
      return bias[o]! + 0.5 * sum;
    });
    const largest = wanted.reduce((most, v) => Math.max(most, Math.abs(v)), 0);
    const worst = wanted.reduce((most, v, i) => Math.max(most, Math.abs(v - got[i]!)), 0);
    expect(worst / largest).toBeLessThan(tolerance(kernel));
  });

  test('the device’s bytes are those of the formula', async () => {
    const { weights, stood } = encoded(weightsOf(40 * 96, 11), dtype, 96);
    const [bytes] = await gpu.read([{ buffer: weights, byteLength: weights.byteLength }]);
    const [levels, scales] = [new Int8Array(bytes!.buffer), new Float32Array(bytes!.buffer)];
    const got = stood.map((_, i) => {
      const block = i >> 5;
      return levels[block * ENCODED_BLOCK.deviceBytes + (i % 32)]! * scales[9 * block + 8]!;
    });
    expect(got).toEqual(stood.map((value) => value || 0));
  });

  test('a value that is not finite does not get lost', async () => {
    for (const odd of [Number.NaN, Number.NEGATIVE_INFINITY]) {
      const values = weightsOf(2 * 64, 5);
      values[70] = odd;
      const { weights } = encoded(values, dtype, 64);
      const [bytes] = await gpu.read([{ buffer: weights, byteLength: 4 * ENCODED_BLOCK.deviceBytes }]);
      const words = new Float32Array(bytes!.buffer);
      expect([8, 17, 26, 35].map((at) => Number.isFinite(words[at]!))).toEqual([true, true, false, true]);
    }
  });
});
