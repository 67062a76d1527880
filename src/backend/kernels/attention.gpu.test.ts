/** The three kernels of attention on both engines, and against the definition. */
import { describe, expect, it } from 'vitest';
import { createCpuBackend } from '../cpu/cpu-backend';
import {
  attentionMix,
  attentionScores,
  attentionSoftmax,
  attentionSoftmaxLine,
  NO_WINDOW,
} from './attention';
import { comparison, floats } from './forward-kernels.test.fixture';
import { sharedGpu } from './kernels.test.support';

const gpu = await sharedGpu();
const expectClose = comparison(createCpuBackend(), () => gpu);

describe('attention', () => {
  // heads, heads per key head, head_dim / 4, window, cap, slopes
  const cases = [
    [6, 3, 2, NO_WINDOW, 0, 0],
    [4, 1, 6, NO_WINDOW, 2, 0],
    [10, 1, 1, NO_WINDOW, 0, 1],
    [4, 2, 4, 5, 0, 0],
  ] as const;

  it.each(cases)(
    '%i heads, %i a key head, 4·%i dims, window %i, cap %f',
    async (heads, heads_per_key, dim4, window, cap, sloped) => {
      // two sequences: 10 rows from position 0 with keys from row 0 on, 3 rows from position 6 with keys from row 14 on
      const sequences = [
        { row: 0, count: 10, origin: 0, position: 0 },
        { row: 10, count: 3, origin: 14, position: 6 },
      ];
      const groups = sequences.flatMap(({ row, count, origin, position }) =>
        Array.from({ length: Math.ceil(count / 4) }, (_, i) => [
          row + 4 * i,
          Math.min(4, count - 4 * i),
          origin,
          position + 4 * i,
        ]),
      );
      const [rows, dim, line_width, skipped] = [13, dim4 * 4, 12, 1];
      const lines = (groups.length - skipped) * heads * 4;
      const shared = { groups: groups.length - skipped, group_begin: skipped, heads, line_width, window };
      const table = Uint32Array.from(groups.flat());
      const q = floats(rows * heads * dim, 20, 3);
      const k = floats(24 * (heads / heads_per_key) * dim, 21, 3);
      const v = floats(k.length, 22);
      const slopes = floats(heads, 23);
      const scores = await expectClose(
        attentionScores,
        { q, k, groups: table, slopes, scores: new Float32Array(lines * line_width) },
        { ...shared, heads_per_key, dim4, sloped, scale: 0.3, cap },
        'scores',
      );
      const before = { groups: table, scores: scores.slice() };
      const shares = await expectClose(attentionSoftmax, before, shared, 'scores');
      const again = await expectClose(attentionSoftmaxLine, before, shared, 'scores');
      expect(again).toEqual(shares);
      const y = await expectClose(
        attentionMix,
        { shares: shares.slice(), v, groups: table, y: new Float32Array(q.length) },
        { ...shared, heads_per_key, dim4 },
      );
      // against the definition
      for (const [row, rowsOfGroup, origin, position] of groups.slice(skipped) as [
        number,
        number,
        number,
        number,
      ][]) {
        for (let i = 0; i < rowsOfGroup; i++) {
          for (const h of [0, heads - 1]) {
            const keys = Array.from(
              { length: Math.min(position + i + 1, window) },
              (_, j) => position + i - j,
            );
            const at = (key: number) =>
              ((origin + key) * (heads / heads_per_key) + Math.floor(h / heads_per_key)) * dim;
            const weights = keys.map((key) => {
              let sum = 0;
              for (let d = 0; d < dim; d++) sum += q[((row + i) * heads + h) * dim + d]! * k[at(key) + d]!;
              const capped = cap > 0 ? cap * Math.tanh((sum * 0.3) / cap) : sum * 0.3;
              return Math.exp(capped + sloped * slopes[h]! * key);
            });
            const total = weights.reduce((a, b) => a + b, 0);
            const wanted = keys.reduce((sum, key, j) => sum + (weights[j]! / total) * v[at(key) + 1]!, 0);
            expect(y[((row + i) * heads + h) * dim + 1]).toBeCloseTo(wanted, 4);
          }
        }
      }
    },
  );
});
