/** The Gram merge against the f64 oracle, and what must hold of it, on either engine. */
import { describe, expect, it } from 'vitest';
import type { Backend } from '../backend/backend';
import type { TensorRef } from '../inputs/tensor-view';
import { type CrossGram, type Gram, type GramForm, holdRows, openCrossGram, openGram } from './gram';
import { gramSolve } from './gram-merge';
import type { LinearTensor } from './linear-tensors';
import { download, farthest, gramOf, layerInputs, normals, tapped, upload } from './mathematics.test.support';
import { gramMergeOracle, gramOracle, matchedOutputsOracle, solveOracle } from './oracle.test.support';
import { transpose } from './row-chunks';
import { loadFactors } from './task-vectors';

export function describeSolve(title: string, engineOf: () => Promise<Backend>): void {
  describe(title, () => {
    const [rows, width] = [23, 68];
    const inputs = [
      layerInputs(200, width, 1, [4]),
      layerInputs(90, width, 2, [4, 7]),
      layerInputs(41, width, 3),
    ];
    const taus = [11, 12, 13].map((seed) => Float32Array.from(normals(rows * width, seed), (v) => 0.01 * v));

    const solve = async (
      models: readonly number[],
      of: readonly Float32Array[],
      form: GramForm,
      weights?: readonly number[],
    ) => {
      const engine = await engineOf();
      const grams = models.map((m) => gramOf(engine, inputs[m]!, width, form));
      const buffers = of.map((t) => upload(engine, t));
      const { tau, factoring: result } = await gramSolve(
        ...([engine, grams, buffers, rows, width, weights && { weights }] as const),
      );
      const out = await download(engine, tau, rows * width);
      for (const b of [...buffers, tau]) engine.free(b);
      for (const g of grams) g.close();
      return { out, factoring: result };
    };
    const oracle = (
      models: readonly number[],
      of: readonly Float32Array[],
      same: (i: number, j: number) => boolean,
    ) => {
      const grams = models.map((m) => ({
        s: gramOracle(inputs[m]!, inputs[m]!.length / width, width).map((v, e) =>
          same(Math.floor(e / width), e % width) ? v : 0,
        ),
        tokens: inputs[m]!.length / width,
      }));
      const out = new Float64Array(rows * width);
      for (let r = 0; r < rows; r++) {
        const own = of.map((t) => t.subarray(r * width, (r + 1) * width));
        out.set(gramMergeOracle(grams, own, width), r * width);
      }
      return out;
    };
    const FORMS: [GramForm, (i: number, j: number) => boolean][] = [
      [{ kind: 'full' }, () => true],
      [{ kind: 'blocks', width: 36 }, (i, j) => i < 36 === j < 36],
      [{ kind: 'diagonal' }, (i, j) => i === j],
    ];

    it.each(FORMS)('the closed form, %o', async (form, same) => {
      for (const models of [
        [0, 1],
        [0, 1, 2],
      ]) {
        const of = models.map((m) => taus[m]!);
        const { out, factoring: result } = await solve(models, of, form);
        expect(farthest(out, oracle(models, of, same))).toBeLessThan(2e-4);
        const dead = models.length === 2 ? 1 : 0;
        expect(result).toEqual({ damping: 0.01, retries: 0, dead, fellBackToDiagonal: false });
      }
    });

    it.each(FORMS)(
      'a model of weight 2 counts as if it were listed twice, one of 0 as if it were not, %o',
      async (form, same) => {
        const { out } = await solve([0, 1, 2], taus, form, [1, 0.5, 0]);
        const listed = oracle([0, 0, 1], [taus[0]!, taus[0]!, taus[1]!], same);
        expect(farthest(out, listed)).toBeLessThan(2e-4);
        expect(farthest(listed, oracle([0, 1], taus.slice(0, 2), same))).toBeGreaterThan(0.05);
        const { out: alone } = await solve([0, 1, 2], taus, form, [0, 1, 0]);
        expect(farthest(alone, taus[1]!)).toBeLessThan(2e-4);
        expect((await solve([0, 1], taus.slice(0, 2), form, [1, 1])).out).toEqual(
          (await solve([0, 1], taus.slice(0, 2), form)).out,
        );
      },
    );

    it.each(FORMS)('of one model, and of equal ones, that model to the bit, %o', async (form) => {
      const [own] = taus as [Float32Array];
      expect((await solve([0], [own], form)).out).toEqual(own);
      expect((await solve([0, 1, 2], [own, own, own], form)).out).toEqual(own);
    });

    it.each(FORMS)('the order of the models does not matter, %o', async (form) => {
      const { out: forward } = await solve([0, 1, 2], taus, form);
      const { out: backward } = await solve([2, 0, 1], [taus[2]!, taus[0]!, taus[1]!], form);
      expect(farthest(backward, forward)).toBeLessThan(1e-4);
    });

    it.each([
      [41, 0, [1, 1]],
      [200, 0, [1, 1]],
      [41, 1, [1, 1]],
      [200, 0.7, [1, 1]],
      [200, 0.7, [0.5, 1]],
    ])(
      'outputs matched from inputs that merging has changed, over %i tokens, with %f of the stream, weights %j',
      async (tokens, share, weights) => {
        const engine = await engineOf();
        const base = Float32Array.from(normals(rows * width, 31), (v) => 0.1 * v);
        const models = [0, 1].map((m) => {
          const own = layerInputs(tokens, width, 40 + m);
          const moved = normals(own.length, 50 + m);
          const streams = [60, 70].map((seed) => Float32Array.from(normals(tokens * rows, seed + m)));
          return { own, merged: own.map((v, e) => v + 0.1 * moved[e]!), tau: taus[m]!, streams };
        });
        const grams: Gram[] = [];
        const crosses: CrossGram[] = [];
        const streams: CrossGram[] = [];
        for (const { own, merged, streams: stood } of models) {
          const gram = openGram(engine, width, { kind: 'full' });
          const cross = openCrossGram(engine, gram.blocks);
          const stream = openCrossGram(engine, gram.blocks, rows);
          // in two parts, neither of which is a multiple of four
          for (const [begin, end] of [
            [0, 23],
            [23, tokens],
          ] as const) {
            const part = (x: Float32Array) => tapped(engine, x.subarray(begin * width, end * width), width);
            const held = holdRows(part(own));
            const seen = part(merged);
            gram.add(seen);
            cross.add(seen, seen, held);
            const [before, now] = stood.map((h) =>
              tapped(engine, h.subarray(begin * rows, end * rows), rows),
            );
            const entered = holdRows(before!);
            stream.add(seen, now!, entered);
            for (const buffer of [held, entered]) engine.free(buffer);
          }
          grams.push(gram);
          crosses.push(cross);
          streams.push(stream);
        }
        const buffers = models.map(({ tau }) => upload(engine, tau));
        const disturbed = {
          ...{ base: upload(engine, base), crosses },
          ...(share > 0 && { streams: { crosses: streams, share } }),
        };
        const { tau } = await gramSolve(engine, grams, buffers, rows, width, { disturbed, weights });
        const out = await download(engine, tau, rows * width);
        const wanted = new Float64Array(rows * width);
        for (let r = 0; r < rows; r++) {
          const whole = (of: Float32Array) =>
            Float64Array.from({ length: width }, (_, j) => base[r * width + j]! + of[r * width + j]!);
          // weights are shares of the number of times that a model is listed
          const listed = models.flatMap((model, m) =>
            Array<typeof model>(weights[m]! / Math.min(...weights)).fill(model),
          );
          const w = matchedOutputsOracle(
            listed.map(({ own, merged, tau: of, streams: [before, now] }) => ({
              ...{ own, merged, row: whole(of) },
              more: Array.from(
                { length: tokens },
                (_, t) => share * (before![t * rows + r]! - now![t * rows + r]!),
              ),
            })),
            width,
          );
          for (let j = 0; j < width; j++) wanted[r * width + j] = w[j]! - base[r * width + j]!;
        }
        expect(farthest(out, wanted)).toBeLessThan(2e-4);
        for (const g of [...grams, ...crosses, ...streams]) g.close();
      },
    );

    it.each(FORMS)('the factors of LoRAs in place of their changes, %o', async (form, same) => {
      const engine = await engineOf();
      const ranks = [3, 5];
      const factors = ranks.map((rank, i) => ({
        ...{ rank, scale: i + 0.5 },
        a: Float32Array.from(normals(rank * width, 61 + i)),
        b: Float32Array.from(normals(rows * rank, 71 + i), (v) => 0.01 * v),
      }));
      const place = (key: string, values: Float32Array): TensorRef => ({
        ...{ folder: 'lora', file: 'lora', key, dtype: 'F32', shape: [values.length], begin: 0 },
        end: 4 * values.length,
      });
      const models = factors.map(({ rank, scale, a }, i) => {
        const tensor = place(String(i), a);
        return { id: `lora ${i}`, view: { lowRank: { a: tensor, rank, scale } } };
      });
      const { taus: stacked, rows: rank } = await loadFactors(
        { plan: { models }, inputs: width } as unknown as LinearTensor,
        engine,
        async ({ key }) => new Uint8Array(factors[Number(key)]!.a.slice().buffer),
      );
      const grams = [0, 1].map((m) => gramOf(engine, inputs[m]!, width, form));
      const { tau } = await gramSolve(engine, grams, stacked, rank, width);
      const a = await download(engine, tau, rank * width);
      const changes = factors.map((of) => {
        const whole = new Float64Array(rows * width);
        for (const [e] of whole.entries())
          for (let k = 0; k < of.rank; k++)
            whole[e]! +=
              of.scale * of.b[Math.floor(e / width) * of.rank + k]! * of.a[k * width + (e % width)]!;
        return Float32Array.from(whole);
      });
      const ours = new Float64Array(rows * width);
      let first = 0;
      for (const { rank: own, b } of factors) {
        for (const [e] of ours.entries())
          for (let k = 0; k < own; k++)
            ours[e]! += b[Math.floor(e / width) * own + k]! * a[(first + k) * width + (e % width)]!;
        first += own;
      }
      expect(rank).toBe(8);
      expect(farthest(ours, oracle([0, 1], changes, same))).toBeLessThan(2e-4);
      for (const b of [...stacked, tau]) engine.free(b);
      for (const g of grams) g.close();
    });

    it.each([[[1, 1]], [[1, 0.25]]])(
      'changes stand for inputs: G = τᵀτ/‖τ‖² + mean(diag)·I, weights %j',
      async (weights) => {
        const engine = await engineOf();
        const own = taus.slice(0, 2);
        const grams = own.map((t) => gramOf(engine, t, width));
        const squares = own.map((t) => t.reduce((sum, v) => sum + v * v, 0));
        const { tau } = await gramSolve(
          engine,
          grams,
          own.map((t) => upload(engine, t)),
          rows,
          width,
          {
            scales: squares.map((s) => 1 / s),
            ...{ damping: 1, weights },
          },
        );
        const out = await download(engine, tau, rows * width);
        const total = new Float64Array(width * width);
        const damped = own.map((t, i) => {
          const g = gramOracle(t, rows, width).map((v) => v / squares[i]!);
          for (let j = 0; j < width; j++) g[j * (width + 1)]! += 1 / width;
          for (const [e, v] of g.entries()) {
            g[e] = v * weights[i]!;
            total[e]! += g[e];
          }
          return g;
        });
        const wanted = new Float64Array(rows * width);
        for (let r = 0; r < rows; r++) {
          const right = new Float64Array(width);
          for (const [i, g] of damped.entries()) {
            for (let j = 0; j < width; j++) {
              for (let k = 0; k < width; k++) right[j]! += own[i]![r * width + k]! * g[k * width + j]!;
            }
          }
          wanted.set(solveOracle(total, right, width), r * width);
        }
        expect(farthest(out, wanted)).toBeLessThan(1e-5);
        for (const g of grams) g.close();
      },
    );

    it('where one model has no input at all the other decides, and the mean where none has', async () => {
      const engine = await engineOf();
      const zeros = new Float32Array(20 * width);
      const buffers = taus.slice(0, 2).map((t) => upload(engine, t));
      const grams = [gramOf(engine, inputs[2]!, width), gramOf(engine, zeros, width)];
      const { tau } = await gramSolve(engine, grams, buffers, rows, width);
      expect(farthest(await download(engine, tau, rows * width), taus[0]!)).toBeLessThan(1e-4);
      const nothing = await gramSolve(engine, [grams[1]!, grams[1]!], buffers, rows, width);
      const mean = taus[0]!.map((v, e) => (v + taus[1]![e]!) / 2);
      expect(farthest(await download(engine, nothing.tau, rows * width), mean)).toBeLessThan(1e-6);
    });

    it('rows in several chunks', async () => {
      const engine = await engineOf();
      // so wide that a chunk has its least rows, 64
      const [many, wide] = [70, 4096];
      const x = [normals(2 * wide, 61), normals(2 * wide, 62)].map((v) => Float32Array.from(v));
      const own = [63, 64].map((seed) => Float32Array.from(normals(many * wide, seed)));
      const grams = x.map((rowsOf) => gramOf(engine, rowsOf, wide, { kind: 'diagonal' }));
      const buffers = own.map((t) => upload(engine, t));
      const { tau } = await gramSolve(engine, grams, buffers, many, wide);
      const damped = x.map((v) => {
        const h = Float64Array.from({ length: wide }, (_, c) => v[c]! ** 2 + v[wide + c]! ** 2);
        const mean = h.reduce((sum, value) => sum + value, 0) / wide;
        return h.map((value) => value + 0.01 * mean);
      });
      const wanted = own[0]!.map((v, e) => {
        const [a, b] = damped.map((d) => d[e % wide]!) as [number, number];
        return (a * v + b * own[1]![e]!) / (a + b);
      });
      expect(farthest(await download(engine, tau, many * wide), wanted)).toBeLessThan(1e-6);
      for (const b of [...buffers, tau]) engine.free(b);
      for (const g of grams) g.close();
    });

    it('refuses what does not belong together', async () => {
      const engine = await engineOf();
      const full = gramOf(engine, inputs[0]!, width);
      const diagonal = gramOf(engine, inputs[0]!, width, { kind: 'diagonal' });
      const tau = upload(engine, taus[0]!);
      await expect(gramSolve(engine, [full, diagonal], [tau, tau], rows, width)).rejects.toThrow(RangeError);
      await expect(gramSolve(engine, [full], [tau, tau], rows, width)).rejects.toThrow(RangeError);
    });

    it('transposes', async () => {
      const engine = await engineOf();
      const transposed = transpose(engine, upload(engine, taus[0]!), rows, width);
      const wanted = taus[0]!.map((_, e) => taus[0]![(e % rows) * width + Math.floor(e / rows)]!);
      expect(await download(engine, transposed, rows * width)).toEqual(wanted);
    });
  });
}
