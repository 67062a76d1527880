/**
 * Every kernel, on both engines, over the same inputs: the bits must be equal. Sizes straddle lanes, blocks and the
 * histogram's groups. The WGSL source is also held against the TypeScript declaration.
 */
import { describe, expect, it } from 'vitest';
import type { Backend } from '../backend';
import { createCpuBackend } from '../cpu/cpu-backend';
import { BLOCK, blockCount, type Kernel } from '../kernel';
import { COMBINE_STATS, coefficientWords, combine, packKept } from './combine';
import { DTYPE_CODE, decode, encode, inputWords } from './encoding';
import { bytesAfter, floats, sameOnBoth, sharedGpu, words } from './kernels.test.support';
import { COLUMN_ROWS, columnGroups, columnProducts, innerProducts, pairCount } from './products';
import { rowScale } from './rows';
import { countEqual, HISTOGRAM_WORDS, histogram, RANK_SHIFTS, rankDigit, sumCopies } from './search';
import { maskByScore, rowScore, selectMask, selectRandom, selectRank, selectThreshold } from './select';
import { absoluteSum, variance } from './statistics';
import { lowRank, moveValues, subtract, weightedSum } from './sums';

const DTYPES = Object.keys(DTYPE_CODE) as (keyof typeof DTYPE_CODE)[];
const SIZES = [1, 3, 63, 255, 4095, 4096, 4097, 33_001];

const gpu = await sharedGpu();
const cpu = createCpuBackend();

const expectSame = sameOnBoth(() => [cpu, gpu]);

/** Output buffers of the kernels that pack. */
function output(n: number) {
  return {
    packed: new Uint32Array(n + 1),
    sums: new Float32Array(blockCount(n)),
    status: new Uint32Array(2),
  };
}

describe.each(SIZES)('%i elements, cpu = webgpu to the bit', (n) => {
  const blocks = blockCount(n);
  const stride = Math.ceil(n / 4) * 4;

  it.each(DTYPES)('decode %s', async (name) => {
    const inputs = [
      inputWords('whole', 3, name),
      inputWords('change', n + 3, 'BF16'),
      inputWords('leave'),
      inputWords('change', 2 * n + 3, name),
    ];
    const values = words(4 * stride, 3);
    const { values: decoded } = await expectSame(
      decode as Kernel,
      {
        raw: words(3 * n + 3, 1),
        inputs: Uint32Array.from(inputs.flat()),
        values,
        status: new Uint32Array(4),
      },
      { elements: n, stride, slots: 4 },
    );
    expect(decoded!.slice(2 * stride, 2 * stride + n)).toEqual(values.slice(2 * stride, 2 * stride + n));
  });

  it.each(DTYPES)('encode %s', async (name) => {
    await expectSame(
      encode as Kernel,
      { values: floats(stride, 21), merged: words(stride, 2), ...output(n) },
      { elements: n, dtype: DTYPE_CODE[name], status: 1 },
    );
  });

  it('subtract', async () => {
    const values = floats(2 * n, 3);
    await expectSame(subtract as Kernel, { values }, { elements: n, slot: n });
  });

  it.each([0, 1])('low-rank, add %i', async (add) => {
    const cols = Math.min(n, 37);
    const rows = Math.ceil(n / cols) + 2;
    const rank = 5;
    await expectSame(
      lowRank as Kernel,
      {
        left: floats(rows * rank, 4),
        right: floats(rank * Math.ceil(cols / 8) * 8, 5),
        values: floats(n + 2, 6),
      },
      { elements: n, first: cols + 1, cols, rank, slot: 2, add, scale: 1.7 },
    );
  });

  it('row-scale', async () => {
    const cols = Math.min(n, 91);
    const rows = Math.floor(n / cols);
    const values = floats(rows * cols, 7);
    await expectSame(
      rowScale as Kernel,
      { factor: floats(rows, 8), values },
      { elements: rows * cols, cols, slot: 0 },
    );
  });

  it('histogram counts every matching key', async () => {
    const values = floats(n, 9);
    const first = await expectSame(
      histogram as Kernel,
      { values, bins: new Uint32Array(HISTOGRAM_WORDS) },
      { elements: n, slot: 0, shift: 20, bins: 2048, prefix_shift: 31, prefix: 0, out: 0 },
    );
    expect(first.bins!.reduce((a, b) => a + b, 0)).toBe(n);
    const counts = sumCopies(first.bins!);
    const prefix = counts.indexOf(Math.max(...counts));
    const second = await expectSame(
      histogram as Kernel,
      { values, bins: new Uint32Array(2 + HISTOGRAM_WORDS) },
      { elements: n, slot: 0, shift: 10, bins: 1024, prefix_shift: 20, prefix, out: 2 },
    );
    expect(second.bins!.reduce((a, b) => a + b, 0)).toBe(counts[prefix]);
  });

  it('count-equal and select-threshold keep exactly the quota, lowest index first', async () => {
    const values = floats(n, 10);
    const bits = new Uint32Array(values.buffer);
    const key = bits[Math.floor(n / 2)]! & 0x7fffffff;
    const equal = bits.filter((b) => (b & 0x7fffffff) === key).length;
    const counted = await expectSame(
      countEqual as Kernel,
      { values, counts: new Uint32Array(blocks + 1) },
      { elements: n, slot: 0, key, out: 1 },
    );
    expect(counted.counts!.reduce((a, b) => a + b, 0)).toBe(equal);
    const cutBlock = Math.floor(blocks / 2);
    await expectSame(
      selectThreshold as Kernel,
      { values, kept: new Uint32Array(1) },
      {
        elements: n,
        slot: 0,
        first_block: 7,
        key,
        cut_block: 7 + cutBlock,
        cut_quota: 1,
        inner_key: 0x3c000000,
        inner_cut_block: 7,
        inner_cut_quota: 2,
        out: 0,
      },
    );
  });

  it('pack-kept, select-mask and move-values', async () => {
    const values = floats(n + 7, 21);
    const mask = words(Math.ceil(n / 32), 22);
    const params = { elements: n, slot: 7, first: 0 };
    const { mask: packed } = await expectSame(packKept as Kernel, { values, mask }, params);
    for (let e = 0; e < n; e += 1 + (n >> 6)) {
      expect((packed![e >>> 5]! >>> (e & 31)) & 1).toBe(values[7 + e] === 0 ? 0 : 1);
    }
    const { values: kept } = await expectSame(selectMask as Kernel, { mask, values }, params);
    const bits = new Uint32Array(values.buffer);
    for (let e = 0; e < n; e += 1 + (n >> 6)) {
      expect(kept![7 + e]).toBe((mask[e >>> 5]! >>> (e & 31)) & 1 ? bits[7 + e] : 0);
    }
    const { y } = await expectSame(
      moveValues as Kernel,
      { x: values, y: new Float32Array(n + 3) },
      { elements: n, from_word: 5, to_word: 3 },
    );
    expect(y![3]).toBe(bits[5]);
    expect(y![n + 2]).toBe(bits[n + 4]);
  });

  it('select-random', async () => {
    await expectSame(
      selectRandom as Kernel,
      { values: floats(n, 11), kept: new Uint32Array(2) },
      { elements: n, slot: 0, first: 4096 * 12, below: 0x51eb851e, key0: 0xdeadbeef, key1: 77, out: 1 },
    );
  });

  it('inner products and absolute-sum', async () => {
    const count = 3;
    const values = floats(33 * n, 12);
    for (const count of n === 4097 ? [1, 2, 3, 4, 7, 33] : [1, 2, 3, 4, 7]) {
      await expectSame(
        innerProducts as Kernel,
        { values, sums: new Float32Array(blocks * pairCount(count)) },
        { elements: n, slot: 0, stride: n, count, run: BLOCK },
      );
    }
    const cols = Math.min(n, 91);
    const rows = Math.floor(n / cols);
    await expectSame(
      innerProducts as Kernel,
      { values, sums: new Float32Array(rows * pairCount(count)) },
      { elements: rows * cols, slot: 0, stride: n, count, run: cols },
    );
    await expectSame(
      columnProducts as Kernel,
      { values, sums: new Float32Array(Math.ceil(rows / COLUMN_ROWS) * pairCount(count) * cols) },
      { elements: rows * cols, slot: 0, stride: n, count, cols },
      columnGroups(rows, cols),
    );
    await expectSame(
      absoluteSum as Kernel,
      { values, sums: new Float32Array(blocks + 1) },
      { elements: n, slot: n, out: 1 },
    );
  });

  it.each([
    [0, 3],
    [1, 3],
    [2, 3],
    [3, 3],
    [0, 20],
    [1, 32],
  ])('combine, election %i of %i models', async (election, models) => {
    await expectSame(
      combine as Kernel,
      {
        values: floats((models + 1) * stride, 13),
        coefficients: floats(coefficientWords(models, election !== 0), 14),
        packed: new Uint32Array(n + 1),
        stats: new Uint32Array(COMBINE_STATS * blocks),
        status: new Uint32Array(2),
      },
      {
        elements: n,
        stride,
        models,
        election,
        zero_negative: election % 2,
        lambda: 0.9,
        dtype: election % 3,
        status: 1,
      },
    );
  });

  it('weighted-sum', async () => {
    for (const [per, groups] of [
      [3, 5],
      [0xffffffff, 1],
    ] as const) {
      for (const anchor of [0, 1]) {
        const coefficients = floats(groups * 5, 14);
        for (let g = 0; g < groups; g++) coefficients[g * 5 + 1] = g % 2; // affine or not
        for (let g = 0; g < Math.min(3, groups); g++) coefficients[g * 5] = [1, 0, 1][g]!;
        coefficients[2] = 0;
        const sum = { slot: 4, stride, count: 3, anchor, per, groups };
        await expectSame(
          weightedSum as Kernel,
          { values: floats(3 * stride + 4, 15), coefficients, ...output(n) },
          { elements: n, ...sum, dtype: anchor + groups > 2 ? 2 : 0, status: 1 },
        );
      }
    }
  });

  it('ranks inside rows, and the draw by rank', async () => {
    for (const cols of new Set([n, Math.min(n, 91), n < 300 ? 1 : n])) {
      const rows = Math.floor(n / cols);
      const elements = rows * cols;
      const values = floats(n + 1, 16);
      let order = new Uint32Array(elements);
      const orderAfter = async (engine: Backend, shift: number, last: 0 | 1) => {
        const contents = { values, order_in: order, order_out: new Uint32Array(elements) };
        const params = { elements, slot: 1, cols, shift, first: shift === 0 ? 1 : 0, last, ranked: 1 };
        const bytes = await bytesAfter(engine, rankDigit as Kernel, contents, params);
        return new Uint32Array(bytes.order_out!);
      };
      // the processor's form does everything at the last digit, whatever the order before it
      for (const shift of RANK_SHIFTS.slice(0, -1)) order = await orderAfter(gpu, shift, 0);
      const ranks = await orderAfter(cpu, 28, 1);
      expect(ranks).toEqual(await orderAfter(gpu, 28, 1));
      order = ranks;
      const row = values.subarray(1, 1 + cols);
      const bySort = [...row.keys()].sort((a, b) => Math.abs(row[a]!) - Math.abs(row[b]!) || b - a);
      expect(bySort.every((index, rank) => order[index] === rank)).toBe(true);
      const table = words(2 * cols, 17);
      table.set(new Uint32Array(floats(cols, 18).buffer), cols);
      await expectSame(
        selectRank as Kernel,
        { values, ranks: order, table, kept: new Uint32Array(2) },
        { elements, slot: 1, first: 4096, cols, key0: 3, key1: 9, out: 1, ranked: 1 },
      );
    }
  });

  it('scores and their mask', async () => {
    const values = floats(4 * n, 19);
    const cols = Math.min(n, 91);
    const rows = Math.floor(n / cols);
    const scored = await expectSame(
      variance as Kernel,
      { values, score: new Float32Array(n) },
      { elements: n, stride: n, models: 3 },
    );
    await expectSame(
      rowScore as Kernel,
      { values, factor: floats(rows, 20), score: new Float32Array(n) },
      { elements: rows * cols, slot: 0, cols },
    );
    await expectSame(
      maskByScore as Kernel,
      { score: scored.score!.map((w, i) => (i % 3 ? w : 0)), values },
      { elements: n, stride: n, models: 3 },
    );
  });
});
