/** Compensation against exact least squares, on either engine. */
import { describe, expect, it } from 'vitest';
import type { Backend } from '../backend/backend';
import { maskRowWords } from '../backend/kernels/select';
import { compensate } from './compensation';
import type { GramForm } from './gram';
import { download, gramOf, layerInputs, normals, upload } from './mathematics.test.support';
import { dampedOracle, gramOracle, leastSquaresOracle, lossOracle } from './oracle.test.support';
import { columnScores, keepMask } from './trimmed-change';

export function describeCompensation(title: string, engineOf: () => Promise<Backend>): void {
  describe(title, () => {
    const rows = 19;
    /** τ, what a wanda mask of a density keeps of it, and τ̂. */
    const run = async (width: number, tokens: number, density: number, form: GramForm) => {
      const engine = await engineOf();
      const x = layerInputs(tokens, width, 31, [2]);
      const tau = Float32Array.from(normals(rows * width, 32), (v) => 0.01 * v);
      const gram = gramOf(engine, x, width, form);
      const { scale } = await columnScores(engine, gram, 'wanda');
      const buffer = upload(engine, tau);
      const mask = await keepMask(engine, buffer, rows, width, scale, density, 'tensor');
      const out = await compensate(engine, buffer, mask, rows, width, gram);
      const values = await download(engine, out, rows * width);
      const bits = new Uint32Array((await download(engine, mask, rows * maskRowWords(width))).buffer);
      for (const b of [scale, buffer, mask, out]) engine.free(b);
      gram.close();
      const kept = Array.from({ length: rows }, (_, r) =>
        Array.from({ length: width }, (_, c) => c).filter(
          (c) => ((bits[r * maskRowWords(width) + (c >> 5)]! >> (c & 31)) & 1) === 1,
        ),
      );
      const row = (all: Float32Array, r: number) => all.subarray(r * width, (r + 1) * width);
      return { x, tau, values, kept, row, s: gramOracle(x, tokens, width) };
    };
    const apart = (s: Float64Array, width: number, each: number) =>
      s.map((v, e) => (Math.floor(Math.floor(e / width) / each) === Math.floor((e % width) / each) ? v : 0));

    it.each([
      [68, 400, 0.05, { kind: 'full' }, 68],
      [68, 400, 0.2, { kind: 'full' }, 68],
      [132, 90, 0.5, { kind: 'full' }, 132],
      [68, 300, 0.3, { kind: 'blocks', width: 36 }, 36],
    ] as const)(
      '%i columns, %i tokens, density %f: within 0.5 percent of the least error, %o',
      async (width, tokens, density, form, each) => {
        const { s, tau, values, kept, row } = await run(width, tokens, density, form);
        const { damped } = dampedOracle(apart(s, width, each), width, tokens);
        let [error, least, masked] = [0, 0, 0];
        for (let r = 0; r < rows; r++) {
          const [own, got] = [row(tau, r), row(values, r)];
          for (let c = 0; c < width; c++) if (!kept[r]!.includes(c)) expect(got[c]).toBe(0);
          error += lossOracle(got, own, damped, width);
          least += lossOracle(leastSquaresOracle(own, kept[r]!, damped, width), own, damped, width);
          const dropped = own.map((v, c) => (kept[r]!.includes(c) ? v : 0));
          masked += lossOracle(dropped, own, damped, width);
        }
        // relative output errors, as roots: the study's measure
        expect(Math.sqrt(error / least)).toBeLessThan(1.005);
        expect(least).toBeLessThan(0.97 * masked);
      },
    );

    it('rows in several chunks, each with its own part of the mask', async () => {
      const engine = await engineOf();
      // so wide that a chunk has its least rows, 64
      const [many, wide] = [70, 4096];
      const tau = Float32Array.from(normals(many * wide, 71));
      const bits = Uint32Array.from(normals(many * maskRowWords(wide), 72), (v) => v * 2 ** 30);
      const gram = gramOf(engine, Float32Array.from(normals(wide, 73)), wide, { kind: 'diagonal' });
      const [t, mask] = [upload(engine, tau), upload(engine, bits)];
      const out = await compensate(engine, t, mask, many, wide, gram);
      const wanted = tau.map((v, e) => {
        const [r, c] = [Math.floor(e / wide), e % wide];
        return (bits[r * maskRowWords(wide) + (c >> 5)]! >> (c & 31)) & 1 ? v : 0;
      });
      expect(await download(engine, out, many * wide)).toEqual(wanted);
      for (const b of [t, mask, out]) engine.free(b);
      gram.close();
    });

    it('with a diagonal H, or everything kept, nothing moves', async () => {
      const diagonal = await run(68, 300, 0.2, { kind: 'diagonal' });
      for (let r = 0; r < rows; r++) {
        const masked = diagonal.row(diagonal.tau, r).map((v, c) => (diagonal.kept[r]!.includes(c) ? v : 0));
        expect(diagonal.row(diagonal.values, r)).toEqual(masked);
      }
      const all = await run(68, 300, 1, { kind: 'full' });
      expect(all.values).toEqual(all.tau);
    });
  });
}
