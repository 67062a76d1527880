import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { LAMBDA_GRID, lowestLambda, nextLambda, searchLambda } from './lambda-choice';

const valley = (at: number) => async (lambda: number) => [
  Math.log(lambda / at) ** 2,
  2 * Math.log(lambda / at) ** 2,
];

describe('the search for λ', () => {
  test('finds the lowest point of the grid wherever a valley lies, λ = 1 among what was measured', async () => {
    await fc.assert(
      fc.asyncProperty(fc.double({ min: 0.05, max: 8, noNaN: true }), async (at) => {
        const measure = valley(at);
        const { chosen, curve } = await searchLambda(measure);
        const all = await Promise.all(LAMBDA_GRID.map(async (lambda) => (await measure(lambda))[0]!));
        expect(chosen).toBe(LAMBDA_GRID[all.indexOf(Math.min(...all))]);
        expect(curve.map((p) => p.lambda)).toContain(1);
        // from elsewhere it comes to the same, and what little is to be gained can be left
        const known = new Map<number, number>();
        const walk = async (worth: number) => {
          const from = { start: 0.6, step: 2 } as const;
          for (let next = nextLambda(known, from, worth); next; next = nextLambda(known, from, worth)) {
            known.set(next, (await measure(next))[0]!);
          }
          return lowestLambda(known)!;
        };
        const near = await walk(0.01);
        expect(valleyAt(near) - valleyAt(chosen)).toBeLessThan(0.02);
        expect(await walk(0)).toBe(chosen);
        function valleyAt(lambda: number) {
          return Math.log(lambda / at) ** 2;
        }
        expect(curve.map((p) => p.lambda)).toEqual([...curve.map((p) => p.lambda)].sort((a, b) => a - b));
      }),
    );
  });

  test('measures no λ twice, and half the grid at most', async () => {
    for (const at of LAMBDA_GRID) {
      const asked: number[] = [];
      await searchLambda((lambda) => {
        asked.push(lambda);
        return valley(at)(lambda);
      });
      expect(new Set(asked).size).toBe(asked.length);
      expect(asked.length).toBeLessThanOrEqual(LAMBDA_GRID.length / 2);
    }
  });

  test('weighs contributors by their mean loss, and takes the smaller of equals', async () => {
    const { chosen } = await searchLambda(async (lambda) => [lambda < 0.9 ? 3 : 1, lambda > 1 ? 5 : 1]);
    expect(chosen).toBe(0.9);
  });
});
