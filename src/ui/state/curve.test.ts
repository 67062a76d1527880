import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { curveAt } from '../../formats/recipe';
import { density, weight } from '../../merge/methods/parameters';
import { curveRange, curveWithMorePoints, mayCurve, snapped, withoutPoint } from './recipe-validation';

const values = fc.array(
  fc.integer({ min: 0, max: 100 }).map((v) => v / 100),
  { minLength: 2, maxLength: 12 },
);

describe('a curve', () => {
  test('is a sum of tents, one at each point', () => {
    fc.assert(
      fc.property(values, fc.double({ min: 0, max: 1, noNaN: true }), (points, t) => {
        const tents = points.map((y, i) => y * Math.max(0, 1 - Math.abs(t * (points.length - 1) - i)));
        expect(curveAt(points, t)).toBeCloseTo(
          tents.reduce((a, b) => a + b),
          12,
        );
      }),
    );
  });

  test('stays as it is when it gets points between its points', () => {
    fc.assert(
      fc.property(values, fc.double({ min: 0, max: 1, noNaN: true }), (points, t) => {
        const more = curveWithMorePoints(points);
        expect(more).toHaveLength(2 * points.length - 1);
        expect(curveAt(more, t)).toBeCloseTo(curveAt(points, t), 8);
      }),
    );
    expect(curveWithMorePoints([0, 0.2, 0])).toEqual([0, 0.1, 0.2, 0.1, 0]);
  });

  test('loses the point asked for, but never the last two', () => {
    expect(withoutPoint([1, 2, 3], 1)).toEqual([1, 3]);
    expect(withoutPoint([1, 3], 0)).toEqual([1, 3]);
  });

  test('points lie on the steps of the parameter and within its bounds', () => {
    expect(snapped(0.12345, density)).toBe(0.12);
    expect(snapped(7, density)).toBe(1);
    expect(curveRange(weight, [5])).toEqual({ min: -1, max: 5 });
  });

  test('switches, choices and whole numbers have none', () => {
    expect(mayCurve(density)).toBe(true);
    expect(mayCurve({ kind: 'number', integer: true, slider: {} })).toBe(false);
    expect(mayCurve({ kind: 'boolean' })).toBe(false);
  });
});
