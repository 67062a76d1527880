/** Merge counts, and the kernels that look for a threshold in a window of keys, on both engines over the same inputs. */
import { describe, expect, it } from 'vitest';
import type { Backend } from '../backend';
import { createCpuBackend } from '../cpu/cpu-backend';
import { BLOCK, blockCount, type Kernel } from '../kernel';
import { bytesAfter, floats, packedWords, sameOnBoth, sharedGpu } from './kernels.test.support';
import { countWindow, sampleKeys, WINDOW_COUNTS } from './search';
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

const SIZES = [1, 3, 7, 63, 255, 4096, 4097, 33_001];

it.each(SIZES)('%i elements: the same sample', async (n) => {
  await expectSame(
    sampleKeys as Kernel,
    { values: floats(n + 1, 45), keys: new Uint32Array(Math.ceil((BLOCK + n) / 13)) },
    { elements: n, slot: 1, first: BLOCK, step: 13, out: 0 },
  );
});

/** Counts and keys of each block in a window, the keys sorted: their order is up to the engine. */
async function counted(engine: Backend, n: number, lo: number, hi: number, room: number) {
  const blocks = blockCount(n);
  const contents = {
    values: floats(n + 1, 46),
    counts: new Uint32Array(blocks * WINDOW_COUNTS),
    list: new Uint32Array(n + 2),
  };
  const params = { elements: n, slot: 1, lo, hi, out: 0, base: 1, room };
  const { counts, list } = await bytesAfter(engine, countWindow as Kernel, contents, params);
  const perBlock = Array.from({ length: blocks }, (_, b) => {
    const [above, highest, lowest, place, between] = counts!.slice(b * WINDOW_COUNTS);
    return { above, highest, lowest, keys: list!.slice(2 + place!, 2 + place! + between!).sort() };
  });
  return { between: list![1], perBlock, behind: list!.slice(2 + room) };
}

it.each(SIZES)('%i elements: the same counts and the same keys in the window', async (n) => {
  for (const [lo, hi] of [
    [0x3c800000, 0x3d800000],
    [0x3d000000, 0x3d000000],
    [0, 0x7fffffff],
  ] as const) {
    expect(await counted(gpu, n, lo, hi, n)).toEqual(await counted(cpu, n, lo, hi, n));
  }
});

it('counts what it has no room for', async () => {
  const [on, off] = [
    await counted(cpu, 4096, 0, 0x7fffffff, 100),
    await counted(gpu, 4096, 0, 0x7fffffff, 100),
  ];
  expect(off.between).toBe(on.between);
  expect(off.between).toBeGreaterThan(100);
  expect(off.behind.every((word) => word === 0)).toBe(true);
});
