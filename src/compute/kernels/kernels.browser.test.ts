/**
 * Every kernel, on both engines, over the same inputs: the bits must be equal. Sizes straddle lanes, blocks and the
 * histogram's groups. The WGSL source is also held against the TypeScript declaration.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createCpuEngine } from '../../cpu/cpu-engine';
import { createGpuEngine } from '../../gpu/gpu-engine';
import type { ComputeEngine } from '../engine';
import { exact } from '../exact';
import { BLOCK, blockCount, type Kernel } from '../kernel';
import { philox } from '../philox';
import { absoluteSum } from './absolute-sum';
import { changeSquares } from './change-squares';
import { COMBINE_STATS, combine } from './combine';
import { countEqual } from './count-equal';
import { DTYPE_CODE, decode } from './decode';
import { DIFFERENCE_WORDS, difference, rowSegments } from './difference';
import { encode } from './encode';
import { gram, pairCount } from './gram';
import { COLUMN_ROWS, columnGroups, gramColumns } from './gram-columns';
import { HISTOGRAM_ELEMENTS, histogram } from './histogram';
import { lowRank } from './low-rank';
import { maskByScore } from './mask-by-score';
import { PANEL_CHUNK, panelProduct, panelProductTransposed, panelWork } from './panel-product';
import { RANK_SHIFTS, rankDigit } from './rank-digit';
import { rowScale } from './row-scale';
import { rowScore } from './row-score';
import { rowSquares } from './row-squares';
import { selectRandom } from './select-random';
import { selectRank } from './select-rank';
import { selectThreshold } from './select-threshold';
import { subtract } from './subtract';
import { variance } from './variance';
import { weightedSum } from './weighted-sum';

const SIZES = [1, 3, 63, 255, 4095, 4096, 4097, 33_001];
const kernels: Kernel[] = [
  absoluteSum,
  changeSquares,
  combine,
  countEqual,
  decode,
  difference,
  encode,
  gram,
  gramColumns,
  histogram,
  lowRank,
  maskByScore,
  panelProduct,
  panelProductTransposed,
  rankDigit,
  rowScale,
  rowScore,
  rowSquares,
  selectRandom,
  selectRank,
  selectThreshold,
  subtract,
  variance,
  weightedSum,
] as Kernel[];

let gpu: ComputeEngine;
const cpu = createCpuEngine();
beforeAll(async () => {
  gpu = await createGpuEngine();
});
afterAll(() => gpu.close());

/**
 * Numbers over a wide range of exponents, with repeats and zeros of both signs; every fourth block is close to the
 * smallest normal numbers, where products and differences would be subnormal.
 */
function floats(n: number, seed: number): Float32Array<ArrayBuffer> {
  const words = new Uint32Array(4);
  return Float32Array.from({ length: n }, (_, i) => {
    philox(i, 0, seed, 1, words);
    if (words[3]! % 17 === 0) return words[3]! % 2 ? 0 : -0;
    if (words[3]! % 5 === 0) return ((words[0]! % 9) - 4) / 64; // equal magnitudes
    const tiny = seed % 2 === 1 && (i >> 6) % 4 === 1;
    const exponent = (words[1]! % 24) - (tiny ? 125 : 18);
    return exact((words[0]! / 2 ** 31 - 1) * 2 ** exponent); // as decode leaves values: nothing subnormal
  });
}

function words(n: number, seed: number): Uint32Array<ArrayBuffer> {
  const out = new Uint32Array(4);
  return Uint32Array.from({ length: n }, (_, i) => {
    philox(i, 0, seed, 2, out);
    return out[0]!;
  });
}

type Contents = Record<string, Float32Array<ArrayBuffer> | Uint32Array<ArrayBuffer>>;

/** Runs the kernel on one engine and returns the bytes of every buffer. */
async function bytesAfter(
  engine: ComputeEngine,
  kernel: Kernel,
  contents: Contents,
  params: Record<string, number>,
  groups: number,
  elements: number,
) {
  const buffers = Object.fromEntries(
    Object.entries(contents).map(([name, data]) => {
      const buffer = engine.allocate(data.byteLength, name);
      engine.write(buffer, 0, new Uint8Array(data.buffer));
      return [name, buffer];
    }),
  );
  engine.run(kernel, { params, buffers, groups, elements });
  const all = await engine.read(Object.values(buffers).map((b) => ({ buffer: b, byteLength: b.byteLength })));
  for (const b of Object.values(buffers)) engine.free(b);
  return Object.fromEntries(Object.keys(buffers).map((name, i) => [name, new Uint32Array(all[i]!.buffer)]));
}

async function expectSame(
  kernel: Kernel,
  contents: Contents,
  params: Record<string, number>,
  groups: number,
  elements: number,
) {
  const a = await bytesAfter(cpu, kernel, contents, params, groups, elements);
  const b = await bytesAfter(gpu, kernel, contents, params, groups, elements);
  for (const name of Object.keys(a)) {
    const x = a[name]!;
    const y = b[name]!;
    const at = x.findIndex((w, i) => w !== y[i]);
    expect(at, `${kernel.id}.${name}[${at}]: cpu ${x[at]?.toString(16)} gpu ${y[at]?.toString(16)}`).toBe(-1);
  }
  return a;
}

describe('a kernel’s two forms', () => {
  it.each(kernels.map((k) => [k.id, k] as const))(
    '%s: WGSL declares the same parameters and buffers',
    (_, kernel) => {
      const struct = /struct Params \{([^}]*)\}/.exec(kernel.wgsl)![1]!;
      const fields = [...struct.matchAll(/(\w+): ([\w<>]+),/g)].map((m) => [m[1], m[2]]);
      expect(fields[0]).toEqual(['stamp', 'vec4<u32>']);
      expect(Object.fromEntries(fields.slice(1))).toEqual(kernel.params);
      expect(fields.slice(1).map((f) => f[0])).toEqual(Object.keys(kernel.params));
      const bindings = [...kernel.wgsl.matchAll(/@binding\((\d)\) var<storage, (read|read_write)> (\w+):/g)]
        .filter((m) => m[1] !== '9')
        .map((m) => [Number(m[1]), m[3], m[2]]);
      expect(bindings).toEqual(
        Object.entries(kernel.buffers).map(([name, access], i) => [i + 1, name, access]),
      );
    },
  );
});

describe.each(SIZES)('%i elements, cpu = webgpu to the bit', (n) => {
  const blocks = blockCount(n);

  it.each(Object.entries(DTYPE_CODE))('decode %s', async (name, dtype) => {
    const raw = words(n + 4, 1);
    await expectSame(
      decode as Kernel,
      { raw, values: new Uint32Array(n + 5), status: new Uint32Array(2) },
      { elements: n, dtype, raw_begin: name === 'F32' ? 3 : 2, out: 5, status: 1 },
      blocks,
      n,
    );
  });

  it.each(Object.entries(DTYPE_CODE))('encode %s', async (_, dtype) => {
    await expectSame(
      encode as Kernel,
      { values: words(n + 3, 2), packed: new Uint32Array(n), status: new Uint32Array(1) },
      { elements: n, dtype, values_begin: 3, status: 0 },
      blocks,
      n,
    );
  });

  it('subtract', async () => {
    const values = floats(2 * n, 3);
    await expectSame(subtract as Kernel, { values }, { elements: n, slot: n }, blocks, n);
  });

  it.each([0, 1])('low-rank, add %i', async (add) => {
    const cols = Math.min(n, 37);
    const rows = Math.ceil(n / cols) + 2;
    const rank = 5;
    await expectSame(
      lowRank as Kernel,
      { left: floats(rows * rank, 4), right: floats(rank * cols, 5), values: floats(n + 2, 6) },
      { elements: n, first: cols + 1, cols, rank, slot: 2, add, scale: 1.7 },
      blocks,
      n,
    );
  });

  it('row-squares and row-scale', async () => {
    const cols = Math.min(n, 91);
    const rows = Math.floor(n / cols);
    const values = floats(rows * cols, 7);
    await expectSame(
      rowSquares as Kernel,
      { values, squares: new Float32Array(rows) },
      { rows, cols, slot: 0 },
      rows,
      rows * cols,
    );
    await expectSame(
      rowScale as Kernel,
      { factor: floats(rows, 8), values },
      { elements: rows * cols, cols, slot: 0 },
      blockCount(rows * cols),
      rows * cols,
    );
  });

  it('histogram counts every matching key', async () => {
    const values = floats(n, 9);
    const groups = Math.ceil(n / HISTOGRAM_ELEMENTS);
    const first = await expectSame(
      histogram as Kernel,
      { values, bins: new Uint32Array(2048) },
      { elements: n, slot: 0, shift: 20, bins: 2048, prefix_shift: 31, prefix: 0, out: 0 },
      groups,
      n,
    );
    expect(first.bins!.reduce((a, b) => a + b, 0)).toBe(n);
    const prefix = first.bins!.indexOf(Math.max(...first.bins!));
    const second = await expectSame(
      histogram as Kernel,
      { values, bins: new Uint32Array(2 + 1024) },
      { elements: n, slot: 0, shift: 10, bins: 1024, prefix_shift: 20, prefix, out: 2 },
      groups,
      n,
    );
    expect(second.bins!.reduce((a, b) => a + b, 0)).toBe(first.bins![prefix]);
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
      blocks,
      n,
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
      blocks,
      n,
    );
  });

  it('select-random', async () => {
    await expectSame(
      selectRandom as Kernel,
      { values: floats(n, 11), kept: new Uint32Array(2) },
      { elements: n, slot: 0, first: 4096 * 12, below: 0x51eb851e, key0: 0xdeadbeef, key1: 77, out: 1 },
      blocks,
      n,
    );
  });

  it('gram and absolute-sum', async () => {
    const count = 3;
    const values = floats(count * n, 12);
    await expectSame(
      gram as Kernel,
      { values, sums: new Float32Array(blocks * pairCount(count)) },
      { elements: n, slot: 0, stride: n, count, run: BLOCK },
      blocks,
      n,
    );
    const cols = Math.min(n, 91);
    const rows = Math.floor(n / cols);
    await expectSame(
      gram as Kernel,
      { values, sums: new Float32Array(rows * pairCount(count)) },
      { elements: rows * cols, slot: 0, stride: n, count, run: cols },
      rows,
      rows * cols,
    );
    await expectSame(
      gramColumns as Kernel,
      { values, sums: new Float32Array(Math.ceil(rows / COLUMN_ROWS) * pairCount(count) * cols) },
      { elements: rows * cols, slot: 0, stride: n, count, cols },
      columnGroups(rows, cols),
      rows * cols,
    );
    await expectSame(
      absoluteSum as Kernel,
      { values, sums: new Float32Array(blocks + 1) },
      { elements: n, slot: n, out: 1 },
      blocks,
      n,
    );
  });

  it.each([0, 1, 2, 3])('combine, election %i', async (election) => {
    const models = 3;
    const sets = election ? 2 ** models : 1;
    await expectSame(
      combine as Kernel,
      {
        values: floats((models + 1) * n, 13),
        coefficients: floats(2 * models + sets, 14),
        out: new Float32Array(n),
        stats: new Uint32Array(COMBINE_STATS * blocks),
      },
      { elements: n, stride: n, models, election, zero_negative: election % 2, lambda: 0.9 },
      blocks,
      n,
    );
  });

  it('weighted-sum', async () => {
    const [per, groups] = [3, 5];
    for (const anchor of [0, 1]) {
      const coefficients = floats(groups * 5, 14);
      for (let g = 0; g < groups; g++) coefficients[g * 5 + 1] = g % 2; // affine or not
      for (let g = 0; g < 3; g++) coefficients[g * 5] = [1, 0, 1][g]!;
      coefficients[2] = 0;
      await expectSame(
        weightedSum as Kernel,
        { values: floats(3 * n, 15), coefficients, out: new Float32Array(n) },
        { elements: n, slot: 0, stride: n, count: 3, anchor, per, groups },
        blocks,
        n,
      );
    }
  });

  it('ranks inside rows, and the draw by rank', async () => {
    for (const cols of new Set([n, Math.min(n, 91), n < 300 ? 1 : n])) {
      const rows = Math.floor(n / cols);
      const elements = rows * cols;
      const values = floats(n + 1, 16);
      let order = new Uint32Array(elements);
      for (const [pass, shift] of RANK_SHIFTS.entries()) {
        const last = pass === RANK_SHIFTS.length - 1 ? 1 : 0;
        const after = await expectSame(
          rankDigit as Kernel,
          { values, order_in: order, order_out: new Uint32Array(elements) },
          { elements, slot: 1, cols, shift, first: pass === 0 ? 1 : 0, last },
          rows,
          elements,
        );
        order = new Uint32Array(after.order_out!);
      }
      const row = values.subarray(1, 1 + cols);
      const bySort = [...row.keys()].sort((a, b) => Math.abs(row[a]!) - Math.abs(row[b]!) || b - a);
      expect(bySort.every((index, rank) => order[index] === rank)).toBe(true);
      const table = words(2 * cols, 17);
      table.set(new Uint32Array(floats(cols, 18).buffer), cols);
      await expectSame(
        selectRank as Kernel,
        { values, ranks: order, table, kept: new Uint32Array(2) },
        { elements, slot: 1, first: 4096, cols, key0: 3, key1: 9, out: 1 },
        blockCount(elements),
        elements,
      );
    }
  });

  it('scores, their mask, and the change of the output', async () => {
    const values = floats(4 * n, 19);
    const cols = Math.min(n, 91);
    const rows = Math.floor(n / cols);
    const scored = await expectSame(
      variance as Kernel,
      { values, score: new Float32Array(n) },
      { elements: n, stride: n, models: 3 },
      blocks,
      n,
    );
    await expectSame(
      rowScore as Kernel,
      { values, factor: floats(rows, 20), score: new Float32Array(n) },
      { elements: rows * cols, slot: 0, cols },
      blockCount(rows * cols),
      rows * cols,
    );
    await expectSame(
      maskByScore as Kernel,
      { score: scored.score!.map((w, i) => (i % 3 ? w : 0)), values },
      { elements: n, stride: n, models: 3 },
      blocks,
      n,
    );
    await expectSame(
      changeSquares as Kernel,
      { values, out: floats(n, 21), sums: new Float32Array(blocks) },
      { elements: n },
      blocks,
      n,
    );
  });

  it('difference of two versions, by segments of rows', async () => {
    for (const cols of new Set([n, Math.min(n, 91)])) {
      const rows = Math.floor(n / cols);
      const values = floats(2 * n + 1, 22);
      for (let e = 0; e < n; e += 3) values[n + 1 + e] = values[1 + e]!; // a third unchanged
      const segments = rows * rowSegments(cols);
      const after = await expectSame(
        difference as Kernel,
        {
          values,
          delta: new Float32Array(rows * cols + 2),
          sums: new Uint32Array(segments * DIFFERENCE_WORDS),
        },
        { rows, cols, a: 1, b: n + 1, out: 2, threshold: 0.01 },
        segments,
        rows * cols,
      );
      const count = (word: number) =>
        after.sums!.reduce((sum, v, i) => sum + (i % DIFFERENCE_WORDS === word ? v : 0), 0);
      const pairs = Array.from({ length: rows * cols }, (_, e) => [values[1 + e]!, values[n + 1 + e]!]);
      const delta = pairs.map(([x, y]) => Math.abs(exact(y! - x!)));
      expect(count(6)).toBe(delta.filter((d) => d > Math.fround(0.01)).length);
      expect(count(7)).toBe(
        pairs.filter(([x, y]) => x! * y! < 0).length,
      );
      expect(count(8)).toBe(pairs.filter(([x, y]) => !Object.is(x, y)).length);
      const largest = new Float32Array(after.sums!.buffer).filter((_, i) => i % DIFFERENCE_WORDS === 5);
      expect(largest.reduce((a, b) => Math.max(a, b), 0)).toBe(delta.reduce((a, b) => Math.max(a, b), 0));
    }
  });

  it('products of a panel with narrow matrices, whole and in panels', async () => {
    const cols = Math.min(n, 91);
    const rows = Math.floor(n / cols);
    const k4 = 2;
    const panel = floats(rows * cols + 3, 23);
    const zero = { first: 3, rows, cols, k4, y_row: 0 };
    const { groups, elements } = panelWork(rows, k4);
    const x = floats(cols * 4 * k4, 25);
    await expectSame(
      panelProduct as Kernel,
      { panel, x, y: new Float32Array((rows + 1) * 4 * k4) },
      { ...zero, y_row: 1 },
      groups,
      elements,
    );
    const y = floats(rows * 4 * k4, 27);
    const across = panelWork(cols, k4);
    const whole = await expectSame(
      panelProductTransposed as Kernel,
      { panel, y, z: new Float32Array(cols * 4 * k4) },
      zero,
      across.groups,
      across.elements,
    );
    const cut = Math.min(rows, PANEL_CHUNK);
    const top = await bytesAfter(
      cpu,
      panelProductTransposed as Kernel,
      { panel, y, z: new Float32Array(cols * 4 * k4) },
      { ...zero, rows: cut },
      across.groups,
      across.elements,
    );
    if (rows === cut) return;
    const rest = await expectSame(
      panelProductTransposed as Kernel,
      { panel, y, z: top.z! as Uint32Array<ArrayBuffer> },
      { ...zero, first: 3 + cut * cols, rows: rows - cut, y_row: cut },
      across.groups,
      across.elements,
    );
    expect(rest.z).toEqual(whole.z);
  });
});
