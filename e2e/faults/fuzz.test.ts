import { describe, expect, test } from 'vitest';
import { AmalgamError } from '../../src/errors';
import { fuzz } from './fuzz';
import { fuzzTargets, seedBytes } from './fuzz-targets';

describe('R2–R6 R10 R13 R14 R22: hostile input', { timeout: 60_000 }, () => {
  test.each(fuzzTargets)('$name', (target) => {
    const { taken, refused } = fuzz(target, 2000, Math.floor(Math.random() * 2 ** 31));
    expect(taken + refused).toBe(2000);
  });

  test.each(fuzzTargets)('$name: the inputs that are damaged are sound', (target) => {
    const taken = seedBytes(target).filter((seed) => {
      try {
        expect(target.parse(seed)).toBeUndefined();
        return true;
      } catch (thrown) {
        if (thrown instanceof AmalgamError) return false;
        throw thrown;
      }
    });
    expect(taken.length).toBeGreaterThan(0);
  });
});
