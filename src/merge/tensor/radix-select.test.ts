import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { beginSearch, DIGITS, findCut, keptCount, keyToMagnitude, narrow } from './radix-select';

/** The selection by full sort: |τ| descending, then index ascending. */
function bySort(values: Float32Array, k: number): Set<number> {
  const order = [...values.keys()].sort((a, b) => Math.abs(values[b]!) - Math.abs(values[a]!) || a - b);
  return new Set(order.slice(0, k));
}

/** The selection by digits, with blocks of `blockSize`. */
function byDigits(values: Float32Array, k: number, blockSize: number): Set<number> {
  const keys = [...new Uint32Array(values.buffer.slice(0))].map((b) => b & 0x7fffffff);
  let search = beginSearch(k, keys.length);
  DIGITS.forEach(({ shift, bins, prefixShift }, digit) => {
    const counts = new Uint32Array(bins);
    for (const key of keys) if (key >>> prefixShift === search.prefix) counts[(key >>> shift) % bins]!++;
    search = narrow(search, digit, counts);
  });
  const perBlock = new Uint32Array(Math.ceil(keys.length / blockSize));
  keys.forEach((key, i) => {
    if (key === search.prefix) perBlock[Math.floor(i / blockSize)]!++;
  });
  const { key: threshold, cutBlock, cutQuota } = findCut(search.prefix, search.wanted, perBlock);
  const kept = new Set<number>();
  let quota = cutQuota;
  keys.forEach((key, i) => {
    const block = Math.floor(i / blockSize);
    if (key > threshold) kept.add(i);
    else if (key === threshold && (block < cutBlock || (block === cutBlock && quota-- > 0))) kept.add(i);
  });
  return kept;
}

describe('radix select', () => {
  it('keeps exactly what a sort with lowest-index ties keeps', () => {
    const value = fc.oneof(
      fc.float({ noNaN: true, noDefaultInfinity: true }),
      fc.constantFrom(0, -0, 0.5, -0.5, 1e-45, 3.4e38),
    );
    fc.assert(
      fc.property(
        fc.array(value, { minLength: 1, maxLength: 200 }),
        fc.double({ min: 0.001, max: 1, noNaN: true }),
        (list, density) => {
          const values = Float32Array.from(list);
          const k = keptCount(density, values.length);
          expect(byDigits(values, k, 16)).toEqual(bySort(values, k));
        },
      ),
      { numRuns: 500 },
    );
  });

  it('counts like Python’s int(density * n), at least 1, and 0 only for density 0', () => {
    expect(keptCount(0.29, 100)).toBe(28); // 0.29 * 100 = 28.999999999999996
    expect(keptCount(0.2, 5)).toBe(1);
    expect(keptCount(0.01, 64)).toBe(1);
    expect(keptCount(0, 64)).toBe(0);
    expect(keptCount(1, 64)).toBe(64);
    expect(keptCount(0.5, 0)).toBe(0);
  });

  it('reads a key back as a magnitude', () => {
    expect(keyToMagnitude(0x3f800000)).toBe(1);
  });
});
