/** Counting what a merge did gives the same numbers on both backends. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Backend } from '../backend';
import { createCpuBackend } from '../cpu/cpu-backend';
import { createGpuBackend } from '../gpu/gpu-backend';
import { blockCount, type Kernel } from '../kernel';
import { expectDeclared, floats, packedWords, sameOnBoth } from './kernels.test.support';
import { mergeCounts, mergeCountWords } from './merge-counts';

let gpu: Backend;
const cpu = createCpuBackend();
beforeAll(async () => {
  gpu = await createGpuBackend();
});
afterAll(() => gpu.close());

const expectSame = sameOnBoth(() => [cpu, gpu]);

it('WGSL declares the same parameters and buffers', () => expectDeclared(mergeCounts as Kernel));

describe.each([1, 63, 4097, 33_001])('%i elements', (n) => {
  it.each([
    [0, 0],
    [1, 3],
    [2, 3],
    [3, 3],
    [1, 32],
  ])('election %i of %i models', async (election, models) => {
    const stride = Math.ceil(n / 4) * 4;
    const values = floats((models + 1) * stride, 15);
    const packed = packedWords(values, n, (['F32', 'F16', 'BF16'] as const)[election % 3]!, n + 1);
    for (let w = 0; w < n / 2; w += 3) packed[w]! ^= 0x80000000;
    const { counts } = await expectSame(
      mergeCounts as Kernel,
      {
        values,
        coefficients: floats(2 * models + 1, 14),
        packed,
        counts: new Uint32Array(mergeCountWords(models)),
      },
      { elements: n, stride, models, election, zero_negative: election % 2, dtype: election % 3 },
      blockCount(n),
      n,
    );
    if (n > 100) expect(counts![0]).toBeGreaterThan(0);
  });
});
