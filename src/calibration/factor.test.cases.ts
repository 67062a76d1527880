/** Factors, their inverses, and what happens when there is none, on either engine. */
import { describe, expect, it } from 'vitest';
import type { Backend } from '../backend/backend';
import { createQueue } from '../forward/queue';
import { enqueueDamped, factorDamped, inverseTransposed } from './factor';
import { type Gram, openGram } from './gram';
import { gramSolve } from './gram-merge';
import { download, farthest, gramOf, layerInputs, normals, tapped, upload } from './mathematics.test.support';
import { choleskyOracle, dampedOracle, gramOracle, sparseGptFactorOracle } from './oracle.test.support';
import { columnScores } from './trimmed-change';

export function describeFactors(title: string, engineOf: () => Promise<Backend>): void {
  describe(title, () => {
    const factored = async (x: Float32Array, width: number, tokens: number, reversed: boolean) => {
      const engine = await engineOf();
      const queue = createQueue(engine);
      const gram = gramOf(engine, x, width);
      const { h, damped } = dampedOracle(gramOracle(x, tokens, width), width, tokens);
      const shift = damped[0]! - h[0]!;
      const factor = queue.allocate(width ** 2 * 4, 'factor');
      const result = await factorDamped(queue, factor, width, () => {
        const terms = { scale: 2 / tokens, shift, reversed, fillDead: true };
        enqueueDamped(queue, gram.blocks[0]!.buffer, factor, width, terms);
        return shift;
      });
      expect(result).toEqual({ damping: 0.01, retries: 0, fellBackToDiagonal: false });
      const inverse = await inverseTransposed(queue, factor, width);
      const l = await download(engine, factor, width ** 2);
      const n = await download(engine, inverse, width ** 2);
      for (const b of [factor, inverse]) queue.free(b);
      gram.close();
      return { l, n, damped };
    };

    it.each([
      [4, 30, []],
      [32, 100, []],
      [100, 60, [0, 40]],
      [196, 500, [7]],
    ])('L, and the residual of A·A⁻¹, for %i columns and %i tokens', async (width, tokens, dead) => {
      const { l, n, damped } = await factored(layerInputs(tokens, width, 41, dead), width, tokens, false);
      const wanted = choleskyOracle(damped, width);
      const lower = wanted.map((_, e) => (e % width > Math.floor(e / width) ? 0 : l[e]!));
      expect(farthest(lower, wanted)).toBeLessThan(1e-5);
      let worst = 0;
      for (let i = 0; i < width; i++) {
        for (let j = 0; j < i; j++) expect(n[i * width + j]! === 0).toBe(true);
        // row i of A⁻¹ = N·Nᵀ, and of A⁻¹·A
        const row = Float64Array.from({ length: width }, (_, j) => {
          let sum = 0;
          for (let k = Math.max(i, j); k < width; k++) sum += n[i * width + k]! * n[j * width + k]!;
          return sum;
        });
        for (let j = 0; j < width; j++) {
          let sum = 0;
          for (let k = 0; k < width; k++) sum += row[k]! * damped[k * width + j]!;
          worst = Math.max(worst, Math.abs(sum - +(i === j)));
        }
      }
      // κ is up to 100 · width (the damping bounds it), the outlier channel makes use of it
      expect(worst).toBeLessThan(5e-3);
    });

    it('U_jj = 1/R_jj: the reversed factor gives the diagonal of the factor of the inverse', async () => {
      const width = 68;
      const { l, damped } = await factored(layerInputs(300, width, 43), width, 300, true);
      const u = sparseGptFactorOracle(damped, width);
      for (let j = 0; j < width; j++) {
        const r = l[(width - 1 - j) * (width + 1)]!;
        expect(Math.abs(r * u[j * (width + 1)]! - 1)).toBeLessThan(1e-4);
      }
    });

    /** A Gram matrix whose contents are given: what rounding, or a damaged model, could leave. */
    const given = (engine: Backend, s: Float64Array, width: number): Gram => {
      const gram = openGram(engine, width, { kind: 'full' });
      gram.add(tapped(engine, new Float32Array(2 * width), width)); // two tokens: H = S
      engine.write(gram.blocks[0]!.buffer, 0, new Uint8Array(Float32Array.from(s).buffer));
      return gram;
    };

    it('a matrix that is not positive takes more damping, then its diagonal, and the result says so', async () => {
      const engine = await engineOf();
      const width = 36;
      const identity = Float64Array.from({ length: width ** 2 }, (_, e) => +(e % (width + 1) === 0));
      const rows = 5;
      const tau = upload(engine, Float32Array.from(normals(rows * width, 9)));
      for (const [name, offDiagonal, expected] of [
        ['1.05 off the diagonal', 1.05, { damping: 0.1, retries: 1, fellBackToDiagonal: false }],
        ['5 off the diagonal', 5, { damping: 0, retries: 3, fellBackToDiagonal: true }],
        ['NaN off the diagonal', Number.NaN, { damping: 0, retries: 3, fellBackToDiagonal: true }],
      ] as const) {
        const s = identity.slice();
        s[20 * width + 33] = offDiagonal;
        s[33 * width + 20] = offDiagonal;
        const gram = given(engine, s, width);
        for (const score of ['obs', 'sparsegpt'] as const) {
          const { scale, factoring: result } = await columnScores(engine, gram, score);
          // the first damping is the least that is reported: where H stands for itself, that is what it got
          expect(result, `${name}, ${score}`).toEqual({
            ...expected,
            dead: 0,
            damping: Math.max(expected.damping, 0.01),
          });
          const c = await download(engine, scale, width);
          if (expected.fellBackToDiagonal) for (const v of c) expect(v).toBeCloseTo(Math.sqrt(1.01), 5);
          expect(c.every(Number.isFinite)).toBe(true);
        }
        const solved = await gramSolve(engine, [gram, gram], [tau, tau], rows, width);
        expect(solved.factoring).toMatchObject({
          retries: expected.retries,
          fellBackToDiagonal: expected.fellBackToDiagonal,
        });
        gram.close();
      }
    });
  });
}
