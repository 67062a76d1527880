/** Gram matrices and column scores against the f64 oracle, on either engine. */
import { describe, expect, it } from 'vitest';
import type { Backend } from '../backend/backend';
import { openGram } from './gram';
import {
  download,
  farthest,
  gramOf,
  layerInputs,
  normals,
  tapped,
  worstRatio,
} from './mathematics.test.support';
import { gramOracle, scoresOracle } from './oracle.test.support';
import { columnScores, type ScoreKind } from './trimmed-change';

const SCORES: ScoreKind[] = ['wanda', 'obs', 'sparsegpt'];

export function describeGrams(title: string, engineOf: () => Promise<Backend>): void {
  describe(title, () => {
    // widths around the tiles of 8, 32 and 64; the last one needs three dispatches' worth of rows
    it.each([
      [4, 9, 9],
      [36, 70, 33],
      [64, 300, 100],
      [132, 257, 257],
      [20, 4100, 4100],
    ])('S of %i columns over %i rows', async (width, rows, chunk) => {
      const engine = await engineOf();
      const x = layerInputs(rows, width, width);
      const gram = gramOf(engine, x, width, { kind: 'full' }, chunk);
      const s = await gram.read();
      expect(gram.tokens).toBe(rows);
      expect(farthest(s, gramOracle(x, rows, width))).toBeLessThan(2e-6);
      for (let i = 0; i < width; i++) {
        for (let j = 0; j < i; j++) expect(s[i * width + j]).toBe(s[j * width + i]);
      }
      const diagonal = Float64Array.from({ length: width }, (_, j) => s[j * (width + 1)]!);
      expect(farthest(await gram.diagonal(), diagonal)).toBe(0);
      gram.close();
    });

    it('blocks and the diagonal hold what the full matrix has there', async () => {
      const engine = await engineOf();
      const [rows, width, each] = [90, 52, 20];
      const x = layerInputs(rows, width, 3);
      const whole = gramOracle(x, rows, width);
      const blocks = gramOf(engine, x, width, { kind: 'blocks', width: each });
      expect(blocks.blocks.map((b) => [b.begin, b.width])).toEqual([
        [0, 20],
        [20, 20],
        [40, 12],
      ]);
      const s = await blocks.read();
      const wanted = blocks.blocks.flatMap((b) =>
        Array.from({ length: b.width ** 2 }, (_, e) => {
          const row = b.begin + Math.floor(e / b.width);
          return whole[row * width + b.begin + (e % b.width)]!;
        }),
      );
      expect(s.length).toBe(wanted.length);
      expect(farthest(s, wanted)).toBeLessThan(2e-6);
      const diagonal = gramOf(engine, x, width, { kind: 'diagonal' }, 31);
      const squares = Array.from({ length: width }, (_, j) => whole[j * (width + 1)]!);
      expect(worstRatio(await diagonal.read(), squares)).toBeLessThan(2e-6);
      expect(worstRatio(await blocks.diagonal(), squares)).toBeLessThan(2e-6);
      blocks.close();
      diagonal.close();
    });

    it.each([
      ['more tokens than inputs', 300, 68, [] as number[]],
      ['fewer tokens than inputs, two of them dead', 40, 68, [11, 60]],
      ['several tiles', 500, 132, [0]],
    ])('column scores: %s', async (_, rows, width, dead) => {
      const engine = await engineOf();
      const x = layerInputs(rows, width, 17, dead);
      const gram = gramOf(engine, x, width);
      const s = gramOracle(x, rows, width);
      for (const score of SCORES) {
        const { scale, factoring: result } = await columnScores(engine, gram, score);
        const c = (await download(engine, scale, width)).map((v) => v * v);
        engine.free(scale);
        expect(worstRatio(c, scoresOracle(s, width, rows, score)), score).toBeLessThan(3e-4);
        expect(result).toEqual({
          damping: score === 'wanda' ? 0 : 0.01,
          retries: 0,
          dead: dead.length,
          fellBackToDiagonal: false,
        });
      }
      gram.close();
    });

    it('scores of blocks are those of each block; of a diagonal those of the damped diagonal', async () => {
      const engine = await engineOf();
      const [rows, width] = [200, 64];
      const x = layerInputs(rows, width, 5);
      const whole = gramOracle(x, rows, width);
      const apart = (same: (i: number, j: number) => boolean) =>
        whole.map((v, e) => (same(Math.floor(e / width), e % width) ? v : 0));
      const forms = [
        [{ kind: 'blocks', width: 32 }, apart((i, j) => i >> 5 === j >> 5)],
        [{ kind: 'diagonal' }, apart((i, j) => i === j)],
      ] as const;
      for (const [form, s] of forms) {
        const gram = gramOf(engine, x, width, form);
        for (const score of SCORES) {
          const { scale } = await columnScores(engine, gram, score);
          const c = (await download(engine, scale, width)).map((v) => v * v);
          expect(worstRatio(c, scoresOracle(s, width, rows, score)), `${form.kind} ${score}`).toBeLessThan(
            3e-4,
          );
          engine.free(scale);
        }
        gram.close();
      }
    });

    it('scaling a feature by c and its weights by 1/c changes neither wanda nor obs', async () => {
      const engine = await engineOf();
      const [rows, width, feature, factor] = [1000, 32, 9, 0.5];
      const x = Float32Array.from(normals(rows * width, 23));
      const scaled = x.map((v, e) => (e % width === feature ? v * factor : v));
      const scaleOf = async (inputs: Float32Array, score: ScoreKind) => {
        const gram = gramOf(engine, inputs, width);
        const { scale } = await columnScores(engine, gram, score);
        gram.close();
        return (await download(engine, scale, width))[feature]!;
      };
      // the score is |τ_j|·√c_j, and τ_j becomes τ_j/c; obs may move by the damping, a hundredth of the mean of H
      for (const [score, share] of [
        ['wanda', 1e-6],
        ['obs', 0.02],
      ] as const) {
        const ratio = (await scaleOf(scaled, score)) / factor / (await scaleOf(x, score));
        expect(Math.abs(ratio - 1), score).toBeLessThan(share);
      }
    });

    it('refuses rows of another width, and scores without tokens', async () => {
      const engine = await engineOf();
      const gram = openGram(engine, 8, { kind: 'full' });
      expect(() => gram.add(tapped(engine, new Float32Array(24), 12))).toThrow(RangeError);
      await expect(columnScores(engine, gram, 'obs')).rejects.toThrow(RangeError);
      gram.close();
      expect(() => openGram(engine, 6, { kind: 'full' })).toThrow(RangeError);
    });
  });
}
