/** Attention, and the kernels that put heads and rows where they belong, in WebAssembly against their formulas in f64. */
import { describe, expect, it } from 'vitest';
import type { Kernel } from '../kernel';
import { attention, NO_WINDOW, OWN_CODE, placeHeads, placeProjected } from '../kernels/attention';
import { after as contentsAfter, floats } from '../kernels/forward-kernels.test.fixture';
import { addScaled } from '../kernels/sums';
import { createCpuBackend } from './cpu-backend';
import { closeToReference } from './references.test.support';

const engine = createCpuBackend();

const close = closeToReference(engine);

describe('attention', () => {
  // heads, heads a key head, dimensions of queries and of values, window, what heads have of their own, cap
  const cases = [
    [6, 3, 4, 4, NO_WINDOW, 'none', 0],
    [4, 2, 20, 12, 5, 'slopes', 0],
    [2, 1, 64, 64, NO_WINDOW, 'slopes', 0.7],
    [3, 3, 88, 88, 3, 'none', 30],
    [3, 1, 8, 16, 1, 'sinks', 0],
    [4, 2, 8, 16, NO_WINDOW, 'sinks', 0],
  ] as const;
  // rows 0 … 9 from position 0, keys from row 1 on; rows 10 … 12 from position 6, keys from row 14 on
  const groups = [
    [0, 4, 1, 0],
    [4, 4, 1, 4],
    [8, 2, 1, 8],
    [10, 3, 14, 6],
    [13, 1, 14, 9],
  ];

  it.each(cases)(
    '%i heads, %i a key head, %i and %i dimensions, window %i, own %s',
    async (heads, heads_per_key, dim, value, window, own, cap) => {
      const shape = { heads, heads_per_key, dim4: dim / 4, value4: value / 4, window };
      const contents = (words = groups.slice(1)) => ({
        q: floats(14 * heads * dim, 9),
        k: floats(24 * (heads / heads_per_key) * dim, 10),
        v: floats(24 * (heads / heads_per_key) * value, 12),
        groups: Uint32Array.from([groups[0]!, ...words].flat()),
        own: floats(heads, 11, 4),
        room: new Float32Array(4 * 16),
        y: floats(14 * heads * value, 13),
      });
      const params = { ...shape, group_begin: 1, own_kind: OWN_CODE[own], scale: 0.3, cap };
      const y = await close(attention, contents, { ...params, groups: 4 });
      // a row alone in its group has the bits it has beside others
      const alone = [[5, 1, 1, 5]];
      const bytes = await contentsAfter(
        engine,
        attention as unknown as Kernel,
        contents(alone),
        { ...params, groups: 1 },
        'y',
      );
      const row = [5 * heads * value, 6 * heads * value];
      expect(new Float32Array(bytes.buffer).slice(...row)).toEqual(y.slice(...row));
    },
  );
});

describe('what goes through rows', () => {
  it.each([
    [0, 0],
    [3, 0],
    [4, 0],
    [6, 0],
    [3, 1],
    [6, 1],
  ])('heads are put where they belong, %i pairs rotated, neighbors %i', async (half, adjacent) => {
    const [rows, heads, head_dim] = [5, 3, 12];
    for (const keep_rows of [0, 1]) {
      await close(
        placeHeads,
        () => ({
          x: floats(rows * 100, 10),
          places: Uint32Array.from([4, 0, 0, 3, 6, 2, 1, 5, 3, 4]),
          angles: floats(6 * 2 * Math.max(half, 1), 11),
          y: new Float32Array(7 * (heads * (head_dim + 1) + 2)),
        }),
        {
          rows,
          heads,
          head_dim,
          half,
          x_begin: 4,
          x_stride: 100,
          head_stride: 16,
          group: 2,
          group_stride: 50,
          adjacent,
          y_begin: 1,
          y_dim: head_dim + 1,
          y_stride: heads * (head_dim + 1) + 2,
          keep_rows,
        },
      );
    }
  });

  it.each([
    [0, 0],
    [4, 0],
    [3, 1],
  ])(
    'queries, keys and values are put where they belong, %i pairs rotated, neighbors %i',
    async (half, adjacent) => {
      const [rows, heads, key_heads, head_dim] = [5, 4, 2, 12];
      const contents = () => ({
        x: floats(rows * 120, 10),
        places: Uint32Array.from([4, 0, 0, 3, 6, 2, 1, 5, 3, 4]),
        angles: floats(6 * 2 * Math.max(half, 1), 11),
        queries: new Float32Array(rows * heads * head_dim),
        keys: new Float32Array(7 * key_heads * head_dim),
        values: new Float32Array(7 * key_heads * head_dim),
      });
      const params = {
        ...{ rows, heads, key_heads, head_dim, half, adjacent, x_stride: 120 },
        ...{
          query_begin: 1,
          query_stride: 14,
          key_begin: 60,
          key_stride: 13,
          value_begin: 90,
          value_stride: 12,
        },
      };
      for (const output of ['queries', 'keys', 'values'])
        await close(placeProjected, contents, params, output);
    },
  );

  it.each([1, 4, 1111])('%i elements are added', async (elements) => {
    const contents = () => ({ x: floats(elements, 12), y: floats(elements, 13) });
    await close(addScaled, contents, { elements, scale: 0.22 });
  });
});
