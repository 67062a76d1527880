/** Attention on both engines, and against the definition. */
import { describe, expect, it } from 'vitest';
import { createCpuBackend } from '../cpu/cpu-backend';
import { attention, attentionLine, CHUNKED, NO_WINDOW, OWN_CODE } from './attention';
import { comparison, floats } from './forward-kernels.test.fixture';
import { sharedGpu } from './kernels.test.support';
import { REFERENCES } from './references.test.support';

const gpu = await sharedGpu();
const expectClose = comparison(createCpuBackend(), () => gpu);

describe('attention', () => {
  // heads, heads per key head, head_dim / 4, value_dim / 4, window, cap, what heads have of their own, first position
  const cases = [
    [6, 3, 2, 2, NO_WINDOW, 0, 'none', 0],
    [4, 1, 6, 5, NO_WINDOW, 2, 'none', 0],
    [10, 1, 1, 1, NO_WINDOW, 0, 'slopes', 0],
    [4, 2, 4, 4, 5, 0, 'sinks', 0],
    [3, 3, 4, 4, CHUNKED + 7, 0, 'none', 0],
    // wider than a workgroup
    [2, 2, 3, 70, NO_WINDOW, 0, 'none', 0],
    // more keys than are taken at a time
    [2, 1, 2, 3, NO_WINDOW, 0, 'sinks', 509],
    [2, 1, 2, 3, 300, 0, 'none', 700],
  ] as const;

  it.each(cases)(
    '%i heads, %i a key head, 4·%i and 4·%i dims, window %i, cap %f, own %s, from %i on',
    async (heads, heads_per_key, dim4, value4, window, cap, own, start) => {
      // two sequences: 10 rows with keys from row 0 on, 3 rows and then one with keys from row `second` on
      const second = start + 12;
      const groups = [
        [0, 4, 0, start],
        [4, 4, 0, start + 4],
        [8, 2, 0, start + 8],
        [10, 3, second, start + 6],
        [13, 1, second, start + 9],
      ];
      const keyRows = second + start + 10;
      const keyHeads = heads / heads_per_key;
      const contents = {
        q: floats(14 * heads * 4 * dim4, 20, 3),
        k: floats(keyRows * keyHeads * 4 * dim4, 21, 3),
        v: floats(keyRows * keyHeads * 4 * value4, 22),
        groups: Uint32Array.from(groups.flat()),
        own: floats(heads, 23, own === 'sinks' ? 3 : 0.1),
        room: new Float32Array(4 * (start + 16)),
        y: new Float32Array(14 * heads * 4 * value4),
      };
      const shape = { heads, heads_per_key, dim4, value4, window, own_kind: OWN_CODE[own] };
      // the first group is left out
      const params = { groups: 4, group_begin: 1, ...shape, scale: 0.3, cap };
      const y = await expectClose(attention, contents, params);
      expect(await expectClose(attentionLine, contents, params)).toEqual(y);
      const expected = contents.y.slice();
      REFERENCES.attention!({
        params,
        u32: (name) => contents[name as 'groups'],
        f32: (name) => (name === 'y' ? expected : contents[name as 'q']),
      });
      expect(expected.some((value) => value !== 0)).toBe(true);
      for (const [i, value] of expected.entries()) expect(y[i]).toBeCloseTo(value, 5);
    },
  );
});
