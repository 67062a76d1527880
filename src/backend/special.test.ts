import { expect, it } from 'vitest';
import { erf, normalQuantile } from './special';

it('the quantile of a normal distribution: tabled values, and the inverse of its distribution', () => {
  for (const [p, x] of [
    [0.5, 0],
    [0.95, 1.6448536269514722],
    [0.975, 1.959963984540054],
    [0.05, -1.6448536269514722],
    [1e-6, -4.753424308822899],
  ] as const) {
    expect(normalQuantile(p)).toBeCloseTo(x, 9);
  }
  for (let p = 0.01; p < 1; p += 0.01) {
    expect(0.5 * (1 + erf(normalQuantile(p) * Math.SQRT1_2))).toBeCloseTo(p, 13);
  }
});
