/** Colors for numbers: viridis for sizes, purple–orange around 0 for signed values. Both read without red and green. */
import { scaleLinear } from 'd3-scale';
import { interpolateViridis } from 'd3-scale-chromatic';
import { extremeValues, type Heatmap, linearErrors, linearValues } from './heatmap-data';
import type { ShownMetric } from './measured';
import { isFlat } from './metric-choice';

export interface ColorScale {
  min: number;
  max: number;
  /** A part of the scale whose colors differ visibly from the next. */
  step: number;
  /** Every chart is of one value, or of signed ones no larger than their errors, which words say better: nothing is colored. */
  flat: boolean;
  color(value: number): string;
  /** Colors at equal steps from min to max, for the legend. */
  ramp: string[];
  /** Whether values lie below min, and above max. */
  beyond: readonly [boolean, boolean];
}

/** What stands at the ends of the ramp: `≤ 51 %` where values lie beyond. */
export function rampEnds({ tick }: ShownMetric, { min, max, beyond }: ColorScale): [string, string] {
  return [`${beyond[0] ? '≤\u00a0' : ''}${tick(min)}`, `${beyond[1] ? '≥\u00a0' : ''}${tick(max)}`];
}

const RAMP_STEPS = 17;
/** Steps of color that are told apart. */
const STEPS = 8;

/** Color of cells where no color says anything. */
const PAPER = { light: '#efede8', dark: '#3a3732' } as const;

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
  return { min, max, step: (max - min) / STEPS, flat: false, color, ramp, beyond: [false, false] };
}

/** The scale over several charts, over all values but the outermost, for colors to tell the rest apart. */
export function scaleOver(
  metric: ShownMetric,
  maps: readonly Heatmap[],
  theme: 'light' | 'dark',
): ColorScale {
  const { min, max } = percentileDomain(metric, maps, extremeValues(maps));
  const values = maps.flatMap(linearValues);
  const rounding = (max - min) * 1e-6;
  const beyond = [
    values.some((value) => value < min - rounding),
    values.some((value) => value > max + rounding),
  ] as const;
  const scale = { ...colorScale(metric, min, max, theme), beyond };
  const flat = maps.every((map) =>
    metric.diverging ? isWithinErrors(map) : isFlat(metric, linearValues(map)),
  );
  return flat ? { ...scale, flat, color: () => PAPER[theme] } : scale;
}

function isWithinErrors(map: Heatmap): boolean {
  const errors = linearErrors(map);
  return linearValues(map).every((value, i) => Math.abs(value) <= errors[i]!);
}

/**
 * Where a scale begins and ends that leaves out the 2 % of values at either end; wide enough that values which hardly differ
 * look alike, and that a step of color is no smaller than the error of most values. A diverging scale is symmetric about 0.
 */
function percentileDomain(
  { diverging, full }: ShownMetric,
  maps: readonly Heatmap[],
  ends: readonly number[],
): { min: number; max: number } {
  const at = (values: readonly number[], p: number) =>
    [...values].sort((a, b) => a - b)[Math.round(p * (values.length - 1))] ?? 0;
  const values = maps.flatMap(linearValues);
  const least = full.max === null ? Math.abs(ends[1] ?? 0) * 0.05 || 1 : 0.02;
  const noise = at(maps.flatMap(linearErrors), 0.9) * STEPS;
  if (diverging) {
    const max = Math.max(at(values.map(Math.abs), 0.98), least, noise / 2);
    return { min: -max, max };
  }
  const [low, high] = [at(values, 0.02), at(values, 0.98)];
  const width = Math.min(
    Math.max(high - low, least, noise),
    (full.max ?? Number.POSITIVE_INFINITY) - full.min,
  );
  const min = Math.max(
    full.min,
    Math.min((low + high - width) / 2, (full.max ?? Number.POSITIVE_INFINITY) - width),
  );
  return { min, max: min + width };
}

const known = new Map<string, boolean>();
const MOST_KNOWN = 4096;

/** Does text on this color have to be light? Where its relative luminance (WCAG 2) is nearer to black than to white. */
export function wantsLightText(color: string): boolean {
  const found = known.get(color);
  if (found !== undefined) return found;
  const [r = 0, g = 0, b = 0] = channelsOf(color).map((c) =>
    c / 255 <= 0.04045 ? c / 3294.6 : ((c / 255 + 0.055) / 1.055) ** 2.4,
  );
  const light = 0.2126 * r + 0.7152 * g + 0.0722 * b < 0.179;
  if (known.size >= MOST_KNOWN) known.clear();
  known.set(color, light);
  return light;
}

/** Red, green and blue of `#440154`, or of `rgb(…)` and `rgba(…)` as style sheets and scales write them. */
export function channelsOf(color: string): number[] {
  return color.startsWith('#')
    ? [1, 3, 5].map((i) => Number.parseInt(color.slice(i, i + 2), 16))
    : (color.match(/\d+(\.\d+)?/g) ?? []).map(Number);
}
