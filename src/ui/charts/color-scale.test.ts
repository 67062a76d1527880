import fc from 'fast-check';
import { expect, test } from 'vitest';
import { colorScale, domain } from './color-scale';
import { metricById, metrics } from './metrics';

test('the full scale does not depend on the data where the metric has bounds', () => {
  const sparsity = metricById('trimmed');
  expect(domain(sparsity, [0.8, 0.81])).toEqual({ min: 0, max: 1 });
  expect(domain(sparsity, [])).toEqual({ min: 0, max: 1 });
  expect(domain(metricById('outputChange'), [0.004, 0.031])).toEqual({ min: 0, max: 0.04 });
});

test('every scale holds its data, is never empty, and stays within what the metric can be', () => {
  for (const metric of metrics) {
    const value = fc.double({ min: metric.full.min, max: metric.full.max ?? 1e6, noNaN: true });
    fc.assert(
      fc.property(fc.array(value), (values) => {
        const { min, max } = domain(metric, values);
        expect(max).toBeGreaterThan(min);
        expect(values.every((v) => v >= min && v <= max)).toBe(true);
        expect(min).toBeGreaterThanOrEqual(metric.full.min);
        expect(max).toBeLessThanOrEqual(metric.full.max ?? Number.POSITIVE_INFINITY);
        if (metric.diverging) expect(min).toBe(-max);
      }),
    );
  }
});

test('the middle of the diverging scale is quiet in both themes, its ends are not', () => {
  const cosine = metricById('cosine');
  for (const theme of ['light', 'dark'] as const) {
    const scale = colorScale(cosine, -1, 1, theme);
    const chroma = (color: string) => {
      const [r = 0, g = 0, b = 0] = (color.match(/\d+/g) ?? []).map(Number);
      return Math.max(r, g, b) - Math.min(r, g, b);
    };
    expect(chroma(scale.color(0))).toBeLessThan(15);
    expect(chroma(scale.color(-1))).toBeGreaterThan(80);
    expect(chroma(scale.color(1))).toBeGreaterThan(80);
  }
});

test('brighter means more on the sequential scale', () => {
  const scale = colorScale(metricById('trimmed'), 0, 1, 'light');
  const luminance = scale.ramp.map((color) => {
    const [r = 0, g = 0, b = 0] = color.startsWith('#')
      ? [1, 3, 5].map((i) => Number.parseInt(color.slice(i, i + 2), 16))
      : (color.match(/\d+/g) ?? []).map(Number);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  });
  expect(luminance).toEqual([...luminance].sort((a, b) => a - b));
});
