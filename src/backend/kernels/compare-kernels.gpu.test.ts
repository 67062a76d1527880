/** The kernels of comparisons and of samples for charts on both engines, over the same inputs: the bits must be equal. */
import { describe, expect, it } from 'vitest';
import { createCpuBackend } from '../cpu/cpu-backend';
import { exact } from '../exact';
import type { Kernel } from '../kernel';
import { bytesAfter, type Contents, floats, sameOnBoth, sharedGpu } from './kernels.test.support';
import { PANEL_CHUNK, panelProduct, panelProductTransposed } from './products';
import { pickValues } from './search';
import { DIFFERENCE_WORDS, difference, rowSegments } from './statistics';

const SIZES = [1, 3, 63, 255, 4095, 4097, 33_001];

const gpu = await sharedGpu();
const cpu = createCpuBackend();
const expectSame = sameOnBoth(() => [cpu, gpu]);

describe.each(SIZES)('%i elements, cpu = webgpu to the bit', (n) => {
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
        { rows, cols, a: 1, b: n + 1, keep: 1, out: 2, threshold: 0.01 },
        segments,
      );
      const count = (word: number) =>
        after.sums!.reduce((sum, v, i) => sum + (i % DIFFERENCE_WORDS === word ? v : 0), 0);
      const pairs = Array.from({ length: rows * cols }, (_, e) => [values[1 + e]!, values[n + 1 + e]!]);
      const delta = pairs.map(([x, y]) => Math.abs(exact(y! - x!)));
      expect(count(6)).toBe(delta.filter((d) => d > Math.fround(0.01)).length);
      expect(count(7)).toBe(pairs.filter(([x, y]) => x! * y! < 0).length);
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
    const x = floats(cols * 4 * k4, 25);
    await expectSame(
      panelProduct as Kernel,
      { panel, x, y: new Float32Array((rows + 1) * 4 * k4) },
      { ...zero, y_row: 1 },
    );
    const y = floats(rows * 4 * k4, 27);
    const whole = await expectSame(
      panelProductTransposed as Kernel,
      { panel, y, z: new Float32Array(cols * 4 * k4) },
      zero,
    );
    const cut = Math.min(rows, PANEL_CHUNK);
    const top = await bytesAfter(
      cpu,
      panelProductTransposed as Kernel,
      { panel, y, z: new Float32Array(cols * 4 * k4) },
      { ...zero, rows: cut },
    );
    if (rows === cut) return;
    const rest = await expectSame(
      panelProductTransposed as Kernel,
      { panel, y, z: top.z! as Uint32Array<ArrayBuffer> },
      { ...zero, first: 3 + cut * cols, rows: rows - cut, y_row: cut },
    );
    expect(rest.z).toEqual(whole.z);
  });

  it('pick-values copies the picks of the tile and leaves the others', async () => {
    const values = floats(n + 2, 22);
    const picks = Uint32Array.from({ length: 77 }, (_, i) => (i * 131) % (2 * n));
    const after = await expectSame(
      pickValues as Kernel,
      { values, picks, picked: new Float32Array(80).fill(7) },
      { count: 77, first: 5, elements: n, slot: 2, out: 3 },
    );
    const bits = new Uint32Array(values.buffer);
    const seven = new Uint32Array(new Float32Array([7]).buffer)[0];
    expect([...after.picked!]).toEqual([
      seven,
      seven,
      seven,
      ...Array.from(picks, (at) => (at >= 5 && at < 5 + n ? bits[2 + at - 5] : seven)),
    ]);
  });
});

const same = (kernel: object, contents: () => Contents, params: Record<string, number>, groups?: number) =>
  expectSame(kernel as Kernel, contents(), params, groups);

/** Rows and columns: single ones, parts of fours, of chunks of 64 and of segments of 4096. */
const SHAPES = [
  [1, 1],
  [1, 4097],
  [3, 63],
  [5, 64],
  [64, 65],
  [67, 130],
  [130, 67],
  [2, 8195],
] as const;

describe.each(SHAPES)('%i rows of %i columns', (rows, cols) => {
  const n = rows * cols;

  it.each([22, 23])('difference, seed %i', async (seed) => {
    const values = () => {
      const v = floats(2 * n + 1, seed);
      for (let e = 0; e < n; e += 3) v[n + 1 + e] = v[1 + e]!; // a third unchanged
      return v;
    };
    const segments = rows * rowSegments(cols);
    await same(
      difference,
      () => ({
        values: values(),
        delta: new Float32Array(n + 2),
        sums: new Uint32Array(segments * DIFFERENCE_WORDS),
      }),
      { rows, cols, a: 1, b: n + 1, keep: 1, out: 2, threshold: 0.01 },
      segments,
    );
  });

  it.each([
    [1, 1],
    [2, 1],
    [3, 1],
    [7, 1],
    [3, 1e-18],
    [4, 1e-30],
  ])('products with %i quads of columns, values times %f', async (k4, factor) => {
    const scaled = (count: number, seed: number) => floats(count, seed).map((x) => exact(x * factor));
    const params = { first: 3, rows, cols, k4, y_row: 2 };
    const panel = () => scaled(n + 3, 5);
    const y = new Float32Array((rows + 2) * 4 * k4).fill(7);
    await same(panelProduct, () => ({ panel: panel(), x: scaled(cols * 4 * k4, 6), y: y.slice() }), params);
    await same(
      panelProductTransposed,
      () => ({ panel: panel(), y: scaled((rows + 2) * 4 * k4, 7), z: scaled(cols * 4 * k4, 8) }),
      params,
    );
  });
});
