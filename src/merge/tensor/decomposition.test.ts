import { describe, expect, test } from 'vitest';
import { createCpuBackend } from '../../backend/cpu/cpu-backend';
import { transposed } from '../../linalg/columns';
import { decompose, spectrumOf } from './decomposition';
import { matrixOf, norm, onEngine, residual } from './matrix.test.support';

const engine = createCpuBackend();
const name = 'model.layers.0.mlp.up_proj.weight';
const powers = (n: number, exponent: number) => Array.from({ length: n }, (_, i) => (i + 1) ** exponent);

describe('randomized', () => {
  const randomized = { seed: 7, name, way: 'randomized' as const };

  test.each([
    { what: 'flat: i^-½', s: powers(120, -0.5), rows: 160, cols: 120 },
    { what: 'steep: i^-2', s: powers(120, -2), rows: 120, cols: 160 },
    {
      what: 'rank 16 and noise',
      s: [...powers(16, -0.5), ...Array<number>(80).fill(0.01)],
      rows: 150,
      cols: 96,
    },
  ])('within 1 % of the best error, $what', async ({ s, rows, cols }) => {
    const a = matrixOf(rows, cols, s);
    for (const rank of [8, 16, 32]) {
      const svd = await decompose(onEngine(engine, a), { ...randomized, count: rank });
      expect(svd.s).toHaveLength(rank);
      const best = norm(s.slice(rank));
      expect(residual(a, svd, rank)).toBeLessThan(1.01 * best + 2e-7 * norm(s));
      // a projection never makes a singular value larger
      for (const [i, value] of svd.s.entries()) expect(value).toBeLessThan(s[i]! + 1e-7 * s[0]!);
      expect(svd.s[0]).toBeGreaterThan(s[0]! * (1 - 1e-5));
    }
  });

  test('finds a matrix of low rank as it is', async () => {
    const s = powers(8, -1);
    const a = matrixOf(300, 280, s);
    const svd = await decompose(onEngine(engine, a), { ...randomized, count: 8 });
    expect(residual(a, svd, 8)).toBeLessThan(1e-6 * norm(s));
    for (const [i, value] of svd.s.entries()) expect(Math.abs(value - s[i]!)).toBeLessThan(1e-6);
  });

  test('finds everything when as many are wanted as there are', async () => {
    const s = powers(48, -0.5);
    const a = matrixOf(90, 48, s);
    const svd = await decompose(onEngine(engine, a), { ...randomized, count: 48 });
    expect(svd.complete).toBe(true);
    expect(residual(a, svd, 48)).toBeLessThan(2e-6 * norm(s));
  });

  test('does not depend on the panels, and values agree with the whole decomposition', async () => {
    const a = matrixOf(200, 70, powers(70, -0.5));
    const whole = await decompose(onEngine(engine, a), { ...randomized, count: 12 });
    const cut = await decompose(onEngine(engine, a, 64), { ...randomized, count: 12 });
    expect(cut.s).toEqual(whole.s);
    expect(cut.u.data).toEqual(whole.u.data);
    expect(cut.v.data).toEqual(whole.v.data);
    const { values, complete } = await spectrumOf(onEngine(engine, a, 128), { ...randomized, count: 12 });
    expect(complete).toBe(false);
    for (const [i, value] of values.entries()) expect(Math.abs(value - whole.s[i]!)).toBeLessThan(1e-12);
  });

  test('another seed gives other numbers of the same matrix', async () => {
    const a = matrixOf(200, 70, powers(70, -0.5));
    const one = await spectrumOf(onEngine(engine, a), { ...randomized, count: 4 });
    const two = await spectrumOf(onEngine(engine, a), { ...randomized, count: 4, seed: 8 });
    expect(two.values).not.toEqual(one.values);
    for (const [i, value] of one.values.entries())
      expect(Math.abs(value / two.values[i]! - 1)).toBeLessThan(1e-3);
  });
});

describe('exact', () => {
  test.each([
    [120, 90],
    [90, 120],
  ])('%i × %i: every singular value to 1e-5 of the known ones, and the matrix again', async (rows, cols) => {
    const s = powers(90, -1);
    const a = matrixOf(rows, cols, s);
    const svd = await decompose(onEngine(engine, a), { count: 5, seed: 0, name });
    expect(svd.complete).toBe(true);
    expect(svd.s).toHaveLength(90);
    for (const [i, value] of svd.s.entries()) expect(Math.abs(value - s[i]!)).toBeLessThan(1e-5 * s[i]!);
    expect(residual(a, svd, 90)).toBeLessThan(1e-12);
    const { values } = await spectrumOf(onEngine(engine, transposed(a)), { count: 5, seed: 0, name });
    for (const [i, value] of values.entries()) expect(Math.abs(value - svd.s[i]!)).toBeLessThan(1e-12);
  });
});
