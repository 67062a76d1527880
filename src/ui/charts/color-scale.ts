/** Colors for numbers: viridis for sizes, purple–orange around 0 for signed values. Both read without red and green. */
import { scaleLinear } from 'd3-scale';
import { interpolateViridis } from 'd3-scale-chromatic';
import type { ShownMetric } from './metrics';

export interface ColorScale {
  min: number;
  max: number;
  color(value: number): string;
  /** Colors at equal steps from min to max, for the legend. */
  ramp: string[];
}

const RAMP_STEPS = 17;

/** Ends and middle of the diverging scale; the middle is the paper of the theme, so that 0 is quiet. */
const DIVERGING = {
  light: ['#b35806', '#f4f1ea', '#542788'],
  dark: ['#f5a04d', '#2b2822', '#b79cf0'],
} as const;

/** The scale of a metric from `min` to `max` (see `domain`), in the colors of the theme. */
export function colorScale(
  metric: ShownMetric,
  min: number,
  max: number,
  theme: 'light' | 'dark',
): ColorScale {
  const color = metric.diverging
    ? scaleLinear<string>().domain([min, 0, max]).range(DIVERGING[theme]).clamp(true)
    : (value: number) => interpolateViridis(Math.min(1, Math.max(0, (value - min) / (max - min))));
  const ramp = Array.from({ length: RAMP_STEPS }, (_, i) =>
    color(min + ((max - min) * i) / (RAMP_STEPS - 1)),
  );
  return { min, max, color, ramp };
}

/**
 * Where the scale of a metric begins and ends, never empty: `full` covers what the metric can be (or 0 to the largest
 * value), `fit` what it is here, ends rounded outward. A diverging scale is always symmetric about 0.
 */
export function domain(
  metric: ShownMetric,
  values: readonly number[],
  extent: 'full' | 'fit',
): { min: number; max: number } {
  const least = values.reduce((a, b) => Math.min(a, b), Number.POSITIVE_INFINITY);
  const most = values.reduce((a, b) => Math.max(a, b), Number.NEGATIVE_INFINITY);
  const empty = values.length === 0;
  if (metric.diverging) {
    const reach = extent === 'fit' && !empty ? Math.max(Math.abs(least), Math.abs(most)) : 1;
    const [, max] = nice(0, reach);
    return { min: -max, max };
  }
  if (extent === 'full' || empty) {
    const max = metric.full.max ?? (empty ? 1 : nice(0, most)[1]);
    return { min: metric.full.min, max };
  }
  const [min, max] = nice(least, most);
  return { min: Math.max(min, metric.full.min), max: Math.min(max, metric.full.max ?? max) };
}

/**
 * Where a scale begins and ends that leaves out the 2 % of values at either end; wide enough that values which hardly differ
 * look alike. A diverging scale is symmetric about 0.
 */
export function percentileDomain(
  metric: ShownMetric,
  values: readonly number[],
  least: number,
): { min: number; max: number } {
  const sorted = [...(metric.diverging ? values.map(Math.abs) : values)].sort((a, b) => a - b);
  const at = (p: number) => sorted[Math.round(p * (sorted.length - 1))] ?? 0;
  if (metric.diverging) {
    const max = Math.max(at(0.98), least);
    return { min: -max, max };
  }
  const [low, high] = [at(0.02), at(0.98)];
  const margin = Math.max(0, (least - (high - low)) / 2);
  const min = Math.max(metric.full.min, low - margin);
  return { min, max: Math.max(min + least, high + margin) };
}

/** Round ends around [min, max]; a single value gets a tenth of itself to both sides. */
function nice(min: number, max: number): [number, number] {
  const margin = max > min ? 0 : Math.abs(max) / 10 || 1;
  const [a = 0, b = 1] = scaleLinear()
    .domain([min - (min === 0 ? 0 : margin), max + margin])
    .nice(4)
    .domain();
  return [a, b];
}

const known = new Map<string, boolean>();
const MOST_KNOWN = 4096;

/** Does text on this color have to be light? Where its relative luminance (WCAG 2) is nearer to black than to white. */
export function wantsLightText(color: string): boolean {
  const found = known.get(color);
  if (found !== undefined) return found;
  const channels = color.startsWith('#')
    ? [1, 3, 5].map((i) => Number.parseInt(color.slice(i, i + 2), 16))
    : (color.match(/\d+(\.\d+)?/g) ?? []).map(Number);
  const [r = 0, g = 0, b = 0] = channels.map((c) =>
    c / 255 <= 0.04045 ? c / 3294.6 : ((c / 255 + 0.055) / 1.055) ** 2.4,
  );
  const light = 0.2126 * r + 0.7152 * g + 0.0722 * b < 0.179;
  if (known.size >= MOST_KNOWN) known.clear();
  known.set(color, light);
  return light;
}
