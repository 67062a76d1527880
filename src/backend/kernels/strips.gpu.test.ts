/** The kernels of merging in WebAssembly give the bits of their WGSL, whatever the sizes and the numbers. */
import { describe, expect, it } from 'vitest';
import { createCpuBackend } from '../cpu/cpu-backend';
import { BLOCK, blockCount, type Kernel, STRIP } from '../kernel';
import { COMBINE_STATS, coefficientWords, combine, ELECTION } from './combine';
import { DTYPE_CODE, decode, encode, inputWords } from './encoding';
import {
  bytesAfter,
  type Contents,
  floats,
  packedWords,
  sameOnBoth,
  sharedGpu,
  words,
} from './kernels.test.support';
import { innerProducts, pairCount } from './products';
import { countEqual, HISTOGRAM_WORDS, histogram, sampleKeys } from './search';
import { selectRandom, selectRank, selectThreshold } from './select';
import { absoluteSum, mergeCounts, mergeCountWords } from './statistics';
import { lowRank, subtract, weightedSum } from './sums';

const DTYPES = Object.keys(DTYPE_CODE) as (keyof typeof DTYPE_CODE)[];
const SIZES = [1, 3, 4, 7, 63, 255, 4095, 4097, STRIP + 5];
const cpu = createCpuBackend();
const gpu = await sharedGpu();

async function same(
  kernel: unknown,
  contents: () => Contents,
  params: Record<string, number>,
  groups?: number,
): Promise<void> {
  await sameOnBoth(() => [cpu, gpu])(kernel as Kernel, contents(), params, groups);
}

/** Output buffers of the kernels that pack. */
function output(n: number) {
  return {
    packed: new Uint32Array(n + 1),
    sums: new Float32Array(blockCount(n)),
    status: new Uint32Array(2),
  };
}

describe.each(SIZES)('%i elements', (n) => {
  const blocks = blockCount(n);
  const stride = Math.ceil(n / 4) * 4;

  it.each(DTYPES)('decode and encode %s', async (name) => {
    const inputs = [
      inputWords('whole', 3, name),
      inputWords('change', n + 4, 'BF16'),
      inputWords('leave'),
      inputWords('change', 2 * n + 4, name),
    ];
    await same(
      decode,
      () => ({
        raw: words(3 * n + 4, 1),
        inputs: Uint32Array.from(inputs.flat()),
        values: words(4 * stride, 3),
        status: new Uint32Array(4),
      }),
      { elements: n, stride, slots: 4 },
    );
    await same(encode, () => ({ values: floats(stride, 19), merged: words(stride, 2), ...output(n) }), {
      elements: n,
      dtype: DTYPE_CODE[name],
      status: 1,
    });
  });

  it.each([3, 4])('subtract, seed %i', async (seed) => {
    await same(subtract, () => ({ values: floats(2 * n, seed) }), { elements: n, slot: n });
  });

  it.each([
    [0, [1, 1, 0.3, 0.5, 0.2]],
    [1, [0.7, 0, 0, 0.7, -0.4]],
    [2, [0, 0, 0.25, 0, 0]],
    [0, [1, 1, 0.6, 0.4]],
    [1, [0.7, 0, -0.3, 0.7]],
    [0, [0, 0, 0, 0.5]],
  ])('weighted sum, anchor %i, table %j', async (anchor, table) => {
    const count = table.length - 2;
    for (const [i, name] of DTYPES.entries()) {
      const sum = { slot: 4, stride, count, anchor, per: 0xffffffff, groups: 1 };
      await same(
        weightedSum,
        () => ({
          values: floats(count * stride + 4, 5 + i),
          coefficients: Float32Array.from(table),
          ...output(n),
        }),
        { elements: n, ...sum, dtype: DTYPE_CODE[name], status: 1 },
      );
    }
  });

  it.each(Object.entries(ELECTION))('combine, election %s', async (_, election) => {
    for (const [seed, models, lambda, zero_negative] of [
      [7, 1, 1, 0],
      [8, 2, 0.5, 1],
      [9, 3, 1e-4, 0],
      [10, 5, -1.5, 1],
      [11, 2, 1, 0],
      [12, 20, 1, 0],
    ] as const) {
      await same(
        combine,
        () => ({
          values: floats((models + 1) * stride, seed),
          // weights, scales and reciprocals; scales of 1 have a form of their own
          coefficients: floats(coefficientWords(models, election !== 0), seed + 20).map((c, i) =>
            lambda === 1 && i >= models && i < 2 * models ? 1 : c || 0.5,
          ),
          packed: new Uint32Array(n + 1),
          stats: new Uint32Array(blocks * COMBINE_STATS),
          status: new Uint32Array(2),
        }),
        { elements: n, stride, models, election, zero_negative, lambda, dtype: models % 3, status: 1 },
      );
    }
  });

  it.each(Object.entries(ELECTION))('merge counts, election %s', async (_, election) => {
    for (const [models, zero_negative] of [
      [0, 0],
      [1, 0],
      [3, 1],
      [5, 0],
    ] as const) {
      const values = floats((models + 1) * stride, 30 + models);
      const packed = packedWords(values, n, DTYPES[models % 3]!, n + 4);
      for (let e = 0; e < n; e += 5) packed[e >> (models % 3 ? 1 : 0)]! ^= 0x80000000;
      await same(
        mergeCounts,
        () => ({
          values: values.slice(),
          coefficients: floats(2 * models + 1, 50),
          packed: packed.slice(),
          counts: new Uint32Array(mergeCountWords(models)),
        }),
        { elements: n, stride, models, election, zero_negative, dtype: models % 3 },
      );
    }
  });

  it('histogram, every digit', async () => {
    for (const [shift, bins, prefix_shift, prefix] of [
      [20, 2048, 31, 0],
      [10, 1024, 20, 1000],
      [0, 1024, 10, 1_024_000],
    ] as const) {
      await same(
        histogram,
        () => ({ values: floats(n + 1, 11), bins: new Uint32Array(2 * HISTOGRAM_WORDS) }),
        { elements: n, slot: 1, shift, bins, prefix_shift, prefix, out: HISTOGRAM_WORDS },
      );
    }
  });

  it('count of equals', async () => {
    await same(countEqual, () => ({ values: floats(n + 1, 12), counts: new Uint32Array(blocks + 1) }), {
      elements: n,
      slot: 1,
      key: 0x3d000000,
      out: 1,
    });
  });

  it('sample of keys', async () => {
    for (const [first, step] of [
      [0, 1],
      [4096, 13],
      [8192, 127],
    ] as const) {
      await same(
        sampleKeys,
        () => ({ values: floats(n + 1, 25), keys: new Uint32Array(Math.ceil((first + n) / step) + 1) }),
        { elements: n, slot: 1, first, step, out: 1 },
      );
    }
  });

  it('select by threshold', async () => {
    for (const [key, cut_block, cut_quota, inner_key, inner_cut_block, inner_cut_quota] of [
      [0x3d000000, 2, 5, 0x7fffffff, 0, 0],
      [0x3c800000, 0xffffffff, 0, 0x3d000000, 3, 1],
      [0x7fffffff, 0, 0, 0x7fffffff, 0, 0],
      [0, 0xffffffff, 0, 0x3d000000, 0xffffffff, 0],
      [0x3d000000, 3, BLOCK, 0x3d400000, 0, 0],
    ] as const) {
      await same(selectThreshold, () => ({ values: floats(n + 1, 13), kept: new Uint32Array(2) }), {
        elements: n,
        slot: 1,
        first_block: 2,
        key,
        cut_block,
        cut_quota,
        inner_key,
        inner_cut_block,
        inner_cut_quota,
        out: 1,
      });
    }
  });

  it('select at random', async () => {
    await same(selectRandom, () => ({ values: floats(n + 1, 14), kept: new Uint32Array(1) }), {
      elements: n,
      slot: 1,
      first: 8192,
      below: 0x60000000,
      key0: 77,
      key1: 0x80000001,
      out: 0,
    });
  });

  it('selection by ranks', async () => {
    const cols = Math.min(n, 130);
    await same(
      selectRank,
      () => ({
        values: floats(n + 1, 24),
        ranks: Uint32Array.from({ length: n }, (_, e) => (e * 7) % cols),
        table: Uint32Array.from({ length: 2 * cols }, (_, i) => (i < cols ? i * 2 ** 24 : 0x3f000000 + i)),
        kept: new Uint32Array(2),
      }),
      { elements: n, slot: 1, first: 4096, cols, key0: 5, key1: 6, out: 1, ranked: 1 },
    );
  });

  it('selection by probabilities that grow with ranks, which the processor’s form is not told', async () => {
    const cols = Math.min(n, 130);
    const elements = n - (n % cols);
    const values = floats(n + 1, 24);
    const ranks = new Uint32Array(n);
    for (let row = 0; row < elements; row += cols) {
      const size = values.subarray(row + 1, row + 1 + cols).map(Math.abs);
      const order = [...size.keys()].sort((a, b) => size[a]! - size[b]! || b - a);
      for (const [rank, index] of order.entries()) ranks[row + index] = rank;
    }
    const table = Uint32Array.from({ length: 2 * cols }, (_, i) =>
      i < cols ? 2 ** 30 + Math.floor((2 ** 31 * i) / cols) : 0x3f800000,
    );
    const params = { elements, slot: 1, first: 4096, cols, key0: 5, key1: 6, out: 1, ranked: 0 };
    const [here, there] = await Promise.all(
      [cpu, gpu].map(async (engine, i) => {
        const contents = {
          values,
          ranks: i === 0 ? new Uint32Array(n) : ranks,
          table,
          kept: new Uint32Array(2),
        };
        return bytesAfter(engine, selectRank as Kernel, contents, params);
      }),
    );
    expect(here).toEqual({ ...there, ranks: here!.ranks });
  });

  it.each([1, 2, 4])('products of %i vectors', async (count) => {
    for (const seed of [15, 16]) {
      await same(
        innerProducts,
        () => ({
          values: floats(count * n + 1, seed),
          sums: new Float32Array(blocks * pairCount(count)),
        }),
        { elements: n, slot: 1, stride: n, count, run: BLOCK },
      );
    }
  });

  it.each([0, 1])('low rank, add %i', async (add) => {
    for (const [seed, cols] of [
      [21, Math.min(n, 37)],
      [22, Math.min(n, 130)],
      [24, n],
    ] as const) {
      const rank = 5;
      await same(
        lowRank,
        () => ({
          left: floats((Math.ceil(n / cols) + 2) * rank, seed),
          right: floats(rank * Math.ceil(cols / 8) * 8, seed + 2),
          values: floats(n + 2, seed + 4),
        }),
        { elements: n, first: Math.min(cols - 1, 9), cols, rank, slot: 2, add, scale: 0.75 },
      );
    }
  });

  it.each([17, 18])('block sums, seed %i', async (seed) => {
    await same(absoluteSum, () => ({ values: floats(n + 1, seed), sums: new Float32Array(blocks + 1) }), {
      elements: n,
      slot: 1,
      out: 1,
    });
  });
});
