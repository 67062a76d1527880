import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { sampleStep, selectKey, windowOf } from './window-search';

const key = fc.oneof(
  fc.integer({ min: 0, max: 0x7fffffff }),
  fc.constantFrom(0, 1, 0x007fffff, 0x3f800000, 0x7f800000, 0x7fffffff),
);

describe('the k-th largest key', () => {
  it('is what a sort finds, with its rank among its equals', () => {
    fc.assert(
      fc.property(
        fc.array(key, { minLength: 1, maxLength: 300 }),
        fc.nat(),
        fc.boolean(),
        (list, pick, tight) => {
          const keys = Uint32Array.from(list);
          const sorted = keys.slice().sort().reverse();
          const wanted = 1 + (pick % keys.length);
          const found = tight ? selectKey(keys, wanted, sorted.at(-1)!, sorted[0]!) : selectKey(keys, wanted);
          const prefix = sorted[wanted - 1]!;
          expect(found).toEqual({
            prefix,
            wanted: wanted - sorted.indexOf(prefix),
            available: keys.filter((k) => k === prefix).length,
          });
        },
      ),
      { numRuns: 300 },
    );
  });
});

describe('a window', () => {
  it('of a whole small tensor has the threshold at most one rank from its ends', () => {
    const sample = Uint32Array.from({ length: 1000 }, (_, i) => 3 * i);
    expect(sampleStep(1000)).toBe(1);
    expect(windowOf(sample, { wanted: 200 }, 1000, 1000)).toMatchObject({ lo: 3 * 799, hi: 3 * 801 });
  });

  it('is open above for the first ranks, and begins at zero for the last', () => {
    const sample = Uint32Array.from({ length: 1000 }, (_, i) => 3 * i + 1);
    expect(windowOf(sample, { wanted: 1 }, 1000, 1000).hi).toBe(0x7fffffff);
    expect(windowOf(sample, { wanted: 1000 }, 1000, 1000).lo).toBe(0);
  });

  it('is a single key where many elements share it', () => {
    const sample = new Uint32Array(10_000).fill(7).fill(9, 0, 500).fill(5, 9500);
    expect(windowOf(sample, { wanted: 300_000 }, 10_000 * 61, 10_000 * 61)).toMatchObject({ lo: 7, hi: 7 });
  });

  it('is wider for a part of a tensor, and collects no more keys than there is room for, however large the tensor', () => {
    const sample = Uint32Array.from({ length: 16_000 }, (_, i) => i);
    const width = (seen: number, total: number) => {
      const { lo, hi } = windowOf(sample, { wanted: total / 5 }, seen, total);
      return hi - lo;
    };
    expect(width(2 ** 21, 2 ** 23)).toBeGreaterThan(width(2 ** 23, 2 ** 23));
    expect(windowOf(sample, { wanted: 2 ** 28 }, 2 ** 21, 2 ** 30).room).toBeLessThan(2 ** 21 + 4097);
    for (const total of [2 ** 20, 2 ** 24, 2 ** 28, 2 ** 31]) {
      expect(total / sampleStep(total)).toBeLessThanOrEqual(2 ** 21);
    }
  });
});
