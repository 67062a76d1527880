import fc from 'fast-check';
import { expect, test } from 'vitest';
import { colorScale, rampEnds, scaleOver } from './color-scale';
import { heatmapOf, layerGrid } from './heatmap-data';
import { differenceMetric } from './metric-choice';
import { metricById, metrics } from './metrics';

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

/** A chart of one column, a layer a value. */
function chartOf(values: readonly number[], error: number) {
  const tensors = values.map((_, layer) => {
    return { name: `layers.${layer}.q`, layer, module: 'q', copied: false };
  });
  return heatmapOf(layerGrid(tensors), ({ name }) => {
    const value = values[Number(name.split('.')[1])]!;
    return { state: 'measured', measured: { value, weight: 1, error } };
  });
}

test('a step of color is no smaller than the error, whatever the values', () => {
  for (const metric of metrics) {
    const least = metric.full.min;
    const value = fc.double({ min: least, max: metric.full.max ?? 10, noNaN: true });
    const error = fc.double({ min: 1e-3, max: 0.05, noNaN: true });
    fc.assert(
      fc.property(fc.array(value, { minLength: 2, maxLength: 20 }), error, (values, error) => {
        const scale = scaleOver(metric, [chartOf(values, error)], 'light');
        expect(scale.step).toBeGreaterThanOrEqual(error * (1 - 1e-9));
        if (metric.diverging) return;
        expect(scale.min).toBeGreaterThanOrEqual(least);
        expect(scale.max).toBeLessThanOrEqual((metric.full.max ?? Number.POSITIVE_INFINITY) + 1e-9);
      }),
    );
  }
});

test('the digits in cells tell one step of color from the next', () => {
  for (const metric of metrics)
    for (const width of [0.02, 0.1, 0.5, 1]) {
      const { step } = colorScale(metric, 0, width, 'light');
      const texts = [0, 1, 2, 3].map((i) => metric.short(0.3 + i * step, step));
      expect(new Set(texts).size).toBe(4);
    }
});

test('the ends of the ramp say where values lie beyond', () => {
  const trimmed = metricById('trimmed');
  const most = Array.from({ length: 98 }, (_, i) => 0.3 + i / 400);
  const ends = (...odd: number[]) =>
    rampEnds(trimmed, scaleOver(trimmed, [chartOf([...most, ...odd], 0)], 'light'));
  expect(ends(0.01, 0.99)).toEqual([expect.stringMatching(/^≤/), expect.stringMatching(/^≥/)]);
  expect(rampEnds(trimmed, scaleOver(trimmed, [chartOf([0.3, 0.4], 0)], 'light')).join()).not.toMatch(/[≤≥]/);
});

test('a chart of one value is not colored', () => {
  const trimmed = metricById('trimmed');
  const scale = scaleOver(trimmed, [chartOf([0.8, 0.8005, 0.8], 0), chartOf([0.5, 0.5], 0)], 'light');
  expect(scale.flat).toBe(true);
  expect(scale.color(0.8)).toBe(scale.color(0.5));
  expect(scaleOver(trimmed, [chartOf([0.8, 0.7], 0)], 'light').flat).toBe(false);
  // nor is a difference within its error
  const signed = differenceMetric(trimmed);
  const ofDifference = (...values: number[]) => scaleOver(signed, [chartOf(values, 0.01)], 'dark').flat;
  expect(ofDifference(0.01, -0.004, 0)).toBe(true);
  expect(ofDifference(0.01, -0.011)).toBe(false);
});
