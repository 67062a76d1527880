import fc from 'fast-check';
import { describe, expect, it, test } from 'vitest';
import { normals } from '../backend/philox';
import { type Columns, column, dot, product, transposed, zeroColumns } from './columns';
import { thinQr } from './householder';
import { productSvd } from './product-svd';
import { singularValues, smallSvd } from './small-svd';

/** Numbers of one seed; not random enough for anything but tests. */
function fill(rows: number, cols: number, seed: number): Columns {
  const out = zeroColumns(rows, cols);
  let state = seed >>> 0 || 1;
  for (let i = 0; i < out.data.length; i++) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    out.data[i] = state / 2 ** 31 - 1;
  }
  return out;
}

const copy = (a: Columns): Columns => ({ ...a, data: a.data.slice() });
const norm = (x: Float64Array) => Math.sqrt(dot(x, x));

function distance(a: Columns, b: Columns): number {
  return norm(a.data.map((x, i) => x - b.data[i]!));
}

/** ‖QᵀQ − I‖ */
function skew(q: Columns): number {
  const gram = product(transposed(q), q);
  for (let i = 0; i < q.cols; i++) gram.data[i * q.cols + i]! -= 1;
  return norm(gram.data);
}

function rebuilt({ s, u, v }: { s: Float64Array; u: Columns; v: Columns }): Columns {
  const scaled = copy(u);
  for (let i = 0; i < s.length; i++) column(scaled, i).set(column(u, i).map((x) => x * s[i]!));
  return product(scaled, transposed(v));
}

describe('thin QR', () => {
  test('Q is orthonormal and Q·R is the matrix, also for one without full rank', () => {
    const full = fill(37, 12, 1);
    const flat = product(fill(37, 5, 2), fill(5, 12, 3));
    const zero = zeroColumns(9, 4);
    for (const a of [full, flat, zero]) {
      const { q, r } = thinQr(copy(a));
      expect(skew(q)).toBeLessThan(1e-13);
      expect(distance(product(q, r), a)).toBeLessThan(1e-13 * (1 + norm(a.data)));
    }
  });
});

describe('singular value decomposition', () => {
  const sides = fc.integer({ min: 1, max: 24 });

  test('rebuilds every matrix from orthonormal vectors and descending values', () => {
    fc.assert(
      fc.property(sides, sides, fc.integer(), (rows, cols, seed) => {
        const a = fill(rows, cols, seed);
        const svd = smallSvd(copy(a));
        expect(distance(rebuilt(svd), a)).toBeLessThan(1e-12 * (1 + norm(a.data)));
        expect(skew(svd.u)).toBeLessThan(1e-12);
        expect(skew(svd.v)).toBeLessThan(1e-12);
        const sorted = [...svd.s].sort((x, y) => y - x);
        expect([...svd.s]).toEqual(sorted);
      }),
      { numRuns: 60 },
    );
  });

  test('finds a known spectrum over ten orders of magnitude, each value to its own precision', () => {
    const s = Float64Array.from({ length: 11 }, (_, i) => 10 ** -i);
    const u = thinQr(fill(40, 11, 5)).q;
    const v = thinQr(fill(17, 11, 6)).q;
    const a = rebuilt({ s, u, v });
    for (const found of [singularValues(copy(a)), singularValues(transposed(a)), smallSvd(copy(a)).s]) {
      for (const [i, value] of s.entries())
        expect(Math.abs(found[i]! - value)).toBeLessThan(1e-15 + 1e-6 * value);
    }
  });

  test('a matrix by hand: [[3, 0], [4, 5]] has √45 and √5', () => {
    const values = singularValues({ rows: 2, cols: 2, data: Float64Array.of(3, 4, 0, 5) });
    expect(values[0]).toBeCloseTo(Math.sqrt(45), 14);
    expect(values[1]).toBeCloseTo(Math.sqrt(5), 14);
  });

  test('leaves out what is nothing: the rank of a product, none of zero', () => {
    expect(smallSvd(product(fill(30, 3, 7), fill(3, 20, 8))).s).toHaveLength(3);
    expect(smallSvd(zeroColumns(5, 4)).s).toHaveLength(0);
    expect(singularValues(zeroColumns(4, 5))).toHaveLength(0);
  });
});

/** Normal numbers, each column so much smaller than the one before it. */
function random(seed: number, rows: number, cols: number, by = 1): Columns {
  const data = Float64Array.from(normals(rows * cols, [seed, 0]), (v, i) => v * by ** Math.floor(i / rows));
  return { rows, cols, data };
}

describe('leading singular values of a product of thin matrices', () => {
  it.each([
    ['of one size', 1, 5],
    ['of columns down to a thousandth', 0.36, 4],
  ])('%s are those of the whole product', (_, by, wanted) => {
    const [a, b] = [random(1, 40, 8, by), random(2, 30, 8, by)];
    const found = productSvd(a, b, wanted)!;
    const whole = smallSvd(product(a, transposed(b)));
    expect(found.s.length).toBe(wanted);
    const change = (svd: typeof found) => {
      const scaled = { ...svd.u, cols: wanted, data: svd.u.data.slice(0, wanted * 40) };
      for (let k = 0; k < wanted; k++) for (let i = 0; i < 40; i++) scaled.data[k * 40 + i]! *= svd.s[k]!;
      return product(scaled, transposed({ ...svd.v, cols: wanted, data: svd.v.data.slice(0, wanted * 30) }));
    };
    const [own, exact] = [change(found), change(whole)];
    const worst = own.data.reduce((most, v, i) => Math.max(most, Math.abs(v - exact.data[i]!)), 0);
    expect(worst / whole.s[0]!).toBeLessThan(1e-9);
    for (let k = 0; k < wanted; k++) {
      expect(Math.abs(found.s[k]! / whole.s[k]! - 1)).toBeLessThan(1e-8);
      expect(Math.abs(Math.hypot(...column(found.u, k)) - 1)).toBeLessThan(1e-8);
    }
  });

  it('are left to QR where columns depend on each other', () => {
    const a = random(3, 40, 4);
    a.data.copyWithin(40, 0, 40);
    expect(productSvd(a, random(4, 30, 4), 2)).toBeUndefined();
    expect(productSvd(random(5, 40, 4, 1e-3), random(6, 30, 4), 2)).toBeUndefined();
  });
});
