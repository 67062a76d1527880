/** The kernels of a comparison in WebAssembly give the bits of their twins on typed arrays. */
import { describe, it } from 'vitest';
import { DIFFERENCE_WORDS, difference, rowSegments } from '../kernels/difference';
import { floats } from '../kernels/kernels.test.support';
import { panelProduct, panelProductTransposed, panelWork } from '../kernels/panel-product';
import { createCpuBackend } from './cpu-backend';
import { sameAsTwin } from './twins.test.support';

const engine = createCpuBackend();
const same = sameAsTwin(engine);

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
      { rows, cols, a: 1, b: n + 1, out: 2, threshold: 0.01 },
      n,
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
    const scaled = (count: number, seed: number) => floats(count, seed).map((x) => x * factor);
    const params = { first: 3, rows, cols, k4, y_row: 2 };
    const panel = () => scaled(n + 3, 5);
    const of = (outputs: number) => panelWork(outputs, k4);
    const y = new Float32Array((rows + 2) * 4 * k4).fill(7);
    await same(
      panelProduct,
      () => ({ panel: panel(), x: scaled(cols * 4 * k4, 6), y: y.slice() }),
      params,
      of(rows).elements,
      of(rows).groups,
    );
    await same(
      panelProductTransposed,
      () => ({ panel: panel(), y: scaled((rows + 2) * 4 * k4, 7), z: scaled(cols * 4 * k4, 8) }),
      params,
      of(cols).elements,
      of(cols).groups,
    );
  });
});
