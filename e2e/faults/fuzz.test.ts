import { describe, expect, test } from 'vitest';
import { AmalgamError } from '../../src/errors';
import { SEED } from '../seed';
import { fuzz } from './fuzz';
import { fuzzTargets, seedBytes } from './fuzz-targets';

describe('R2–R6 R10 R13 R14 R22 R58 R59: hostile input', () => {
  // long enough to detect a hang on any machine: the command looks closer
  test.each(fuzzTargets)('$name', async (target) => {
    const { taken, refused } = await fuzz(target, 1000, SEED, 2000);
    expect(taken + refused).toBe(1000);
  });

  test.each(fuzzTargets)('$name: the inputs that are damaged are sound', async (target) => {
    let taken = 0;
    for (const seed of seedBytes(target)) {
      try {
        expect(await target.parse(seed)).toBeUndefined();
        taken++;
      } catch (thrown) {
        if (!(thrown instanceof AmalgamError)) throw thrown;
      }
    }
    expect(taken).toBeGreaterThan(0);
  });
});
