/** Masks by importance against a sort, on either engine. */
import { describe, expect, it } from 'vitest';
import type { Backend } from '../backend/backend';
import { maskRowWords } from '../backend/kernels/select';
import { normals, upload } from './mathematics.test.support';
import { keepOracle } from './oracle.test.support';
import { keepMask, type ScoreScope } from './trimmed-change';

export function describeMasks(title: string, engineOf: () => Promise<Backend>): void {
  describe(title, () => {
    const maskOf = async (
      tau: Float32Array,
      rows: number,
      cols: number,
      scale: Float32Array,
      density: number,
      scope: ScoreScope,
    ) => {
      const engine = await engineOf();
      const [t, s] = [upload(engine, tau), upload(engine, scale)];
      const mask = await keepMask(engine, t, rows, cols, s, density, scope);
      const words = rows * maskRowWords(cols);
      expect(mask.byteLength).toBe(words * 4);
      const [bytes] = await engine.read([{ buffer: mask, byteLength: words * 4 }]);
      for (const buffer of [t, s, mask]) engine.free(buffer);
      return new Uint32Array(bytes!.buffer);
    };

    const expected = (
      tau: Float32Array,
      rows: number,
      cols: number,
      scale: Float32Array,
      density: number,
      scope: ScoreScope,
    ) => {
      const scores = tau.map((v, e) => Math.fround(Math.abs(v) * scale[e % cols]!));
      const groups = new Map<number, number[]>();
      for (const e of scores.keys()) {
        const row = Math.floor(e / cols);
        const group = { tensor: 0, row, block: (e % cols) >> 7 }[scope];
        const among = groups.get(group);
        if (among) among.push(e);
        else groups.set(group, [e]);
      }
      const words = new Uint32Array(rows * maskRowWords(cols));
      for (const among of groups.values()) {
        const n = among.length;
        const k = density === 0 ? 0 : Math.min(n, Math.max(1, Math.floor(density * n)));
        for (const e of keepOracle(scores, among, k)) {
          const c = e % cols;
          words[Math.floor(e / cols) * maskRowWords(cols) + (c >> 5)]! |= 1 << (c & 31);
        }
      }
      return words;
    };

    it.each(['tensor', 'row', 'block'] as const)('scope %s', async (scope) => {
      // several blocks of the select, a last block of 20 columns, words that are not full
      const [rows, cols] = [37, 276];
      const tau = Float32Array.from(normals(rows * cols, 1));
      const scale = Float32Array.from(normals(cols, 2), Math.abs);
      for (const density of [0, 1e-9, 0.2, 0.5, 1]) {
        const mask = await maskOf(tau, rows, cols, scale, density, scope);
        expect(mask, `density ${density}`).toEqual(expected(tau, rows, cols, scale, density, scope));
      }
    });

    it.each(['tensor', 'row', 'block'] as const)('many ties and zeros, scope %s', async (scope) => {
      const [rows, cols] = [70, 132];
      // a few magnitudes of both signs; dead inputs have scale 0
      const tau = Float32Array.from(normals(rows * cols, 3), (v) => Math.round(v));
      const scale = Float32Array.from({ length: cols }, (_, c) => [0, 1, 2, 1][c % 4]!);
      for (const density of [0.1, 0.3, 0.9]) {
        const mask = await maskOf(tau, rows, cols, scale, density, scope);
        expect(mask, `density ${density}`).toEqual(expected(tau, rows, cols, scale, density, scope));
      }
    });
  });
}
