/** Merge counts are the same numbers on both backends. */
import { describe, expect, it } from 'vitest';
import { createCpuBackend } from '../cpu/cpu-backend';
import type { Kernel } from '../kernel';
import { floats, packedWords, sameOnBoth, sharedGpu } from './kernels.test.support';
import { mergeCounts, mergeCountWords } from './statistics';

const gpu = await sharedGpu();
const cpu = createCpuBackend();

const expectSame = sameOnBoth(() => [cpu, gpu]);

describe.each([1, 63, 4097, 33_001])('%i elements', (n) => {
  it.each([
    [0, 0, 'small'],
    [1, 3, 'small'],
    [2, 3, 'small'],
    [3, 3, 'small'],
    [1, 32, 'small'],
    [1, 2, 'ordinary'],
    [2, 3, 'ordinary'],
    [3, 5, 'ordinary'],
  ])('election %i of %i models, %s numbers', async (election, models, size) => {
    const stride = Math.ceil(n / 16) * 16;
    const values = floats((models + 1) * stride, size === 'small' ? 15 : 16);
    if (size === 'ordinary') for (let e = 0; e < n / 2; e++) values[e] = (e % 9) / 8;
    if (size === 'ordinary') values[2 * stride] = Number.NaN;
    const coefficients = floats(2 * models + 1, 14);
    if (size === 'ordinary') coefficients.set(coefficients.map((c, i) => Math.sign(c) + i / 8));
    const packed = packedWords(values, n, (['F32', 'F16', 'BF16'] as const)[election % 3]!, n + 1);
    for (let w = 0; w < n / 2; w += 3) packed[w]! ^= 0x80000000;
    const { counts } = await expectSame(
      mergeCounts as Kernel,
      {
        values,
        coefficients,
        packed,
        counts: new Uint32Array(mergeCountWords(models)),
      },
      { elements: n, stride, models, election, zero_negative: election % 2, dtype: election % 3 },
    );
    if (n > 100) expect(counts![0]).toBeGreaterThan(0);
  });
});
