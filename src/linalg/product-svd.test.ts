import { describe, expect, it } from 'vitest';
import { normals } from '../backend/philox';
import { type Columns, column, product, transposed } from './columns';
import { productSvd } from './product-svd';
import { smallSvd } from './small-svd';

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
