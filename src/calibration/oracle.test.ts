/** The oracle on matrices whose inverses are known by hand. */
import { describe, expect, it } from 'vitest';
import {
  choleskyOracle,
  diagonalOf,
  gramMergeOracle,
  inverseOracle,
  keepOracle,
  leastSquaresOracle,
  lossOracle,
  scoresOracle,
  sparseGptFactorOracle,
} from './oracle.test.support';

/** det 4, inverse ¼ · [[3, −2, 1], [−2, 4, −2], [1, −2, 3]]. */
const A = Float64Array.of(2, 1, 0, 1, 2, 1, 0, 1, 2);

describe('a matrix of three columns', () => {
  it('inverse and factors', () => {
    const inverse = [3, -2, 1, -2, 4, -2, 1, -2, 3];
    for (const [e, v] of inverseOracle(A, 3).entries()) expect(v).toBeCloseTo(inverse[e]! / 4, 14);
    // U_jj² is the corner of the inverse of what is left from column j on: 3/4, 2/3 of [[2, 1], [1, 2]], 1/2
    const u = diagonalOf(sparseGptFactorOracle(A, 3), 3);
    for (const [j, square] of [3 / 4, 2 / 3, 1 / 2].entries()) expect(u[j]! ** 2).toBeCloseTo(square, 14);
    expect(() => choleskyOracle(Float64Array.of(1, 2, 2, 1), 2)).toThrow(RangeError);
  });

  it('the loss of dropping one weight is w²/[A⁻¹]_jj once the others make up for it', () => {
    const w = [3, -1, 2];
    const inverse = diagonalOf(inverseOracle(A, 3), 3);
    for (const j of [0, 1, 2]) {
      const others = [0, 1, 2].filter((c) => c !== j);
      const loss = lossOracle(leastSquaresOracle(w, others, A, 3), w, A, 3);
      expect(loss).toBeCloseTo(w[j]! ** 2 / inverse[j]!, 12);
      // and more with the others as they are: w²·A_jj
      expect(
        lossOracle(
          w.map((v, c) => (c === j ? 0 : v)),
          w,
          A,
          3,
        ),
      ).toBeCloseTo(w[j]! ** 2 * 2, 12);
    }
  });

  it('scores take the damping after the rule for dead inputs', () => {
    // two tokens, H = S: [[2, 0], [0, dead]] becomes [[2, 0], [0, 1]] with a mean of 1.5
    const s = [2, 0, 0, 0];
    expect([...scoresOracle(s, 2, 2, 'wanda')]).toEqual([2, 0]);
    for (const score of ['obs', 'sparsegpt'] as const) {
      const [alive, dead] = scoresOracle(s, 2, 2, score);
      expect(alive).toBeCloseTo(2.015, 12);
      expect(dead).toBe(0);
    }
  });

  it('the Gram merge weighs each column by what its models saw there', () => {
    const grams = [
      { s: [3, 0, 0, 1], tokens: 2 },
      { s: [1, 0, 0, 3], tokens: 2 },
    ];
    const [a, b] = gramMergeOracle(grams, [Float64Array.of(1, 1), Float64Array.of(0, 0)], 2);
    expect(a).toBeCloseTo(3.02 / 4.04, 12);
    expect(b).toBeCloseTo(1.02 / 4.04, 12);
  });

  it('keeps the lowest index among equals', () => {
    expect(keepOracle([1, 3, 3, 0, 3], [0, 1, 2, 3, 4], 2)).toEqual(new Set([1, 2]));
  });
});
