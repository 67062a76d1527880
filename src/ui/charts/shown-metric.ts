/** Properties of a metric that charts need, and its numbers as text. Pure. */
import { formatPercent, formatReal, NBSP } from '../../formats/quantity';
import type { Measured } from './measured';

export interface ShownMetric {
  /** In the metric picker. */
  label: string;
  /** One line of explanation below the picker. */
  meaning: string;
  /** Where colors begin and end on the full scale; null: at the largest value there is. */
  full: { min: number; max: number | null };
  /** 0 is the middle, and the sign matters. */
  diverging: boolean;
  /** The value is a share: differences are in percentage points. */
  isShare: boolean;
  /** The number with its unit. */
  format(value: number): string;
  /** The same for the ends of a scale, which are round. */
  tick(value: number): string;
  /** The number without its unit, for a cell: with the digits that tell one step of color from the next. */
  short(value: number, step: number): string;
  /** The number as words for a cell: `80.1 % zero`. */
  phrase(value: number): string;
  /** Words for a tensor that was reached and has no value. */
  absent: string;
}

/** Properties shared by metrics that are a share. */
export const SHARE = {
  full: { min: 0, max: 1 },
  diverging: false,
  isShare: true,
  format: formatPercent,
  tick: percentTick,
  short: (share: number, step: number) => digits(share * 100, step * 100),
} as const;

/** Sizes, from 0 up. */
export const SIZE = {
  full: { min: 0, max: null },
  diverging: false,
  isShare: false,
  format: formatReal,
  tick: realTick,
  short: digits,
} as const;

function percentTick(share: number): string {
  return `${realTick(share * 100)}${NBSP}%`;
}

/** Most decimals of a number in a cell; what needs more is written with an exponent. */
const DECIMALS = 4;

/** The number to the decimal of `step`: `52`, `52.3`, `.12`, `2.1e-6`. */
export function digits(value: number, step: number): string {
  const decimals = Math.max(0, Math.ceil(-Math.log10(step)));
  const text =
    decimals > DECIMALS && value !== 0 ? value.toExponential(1) : value.toFixed(Math.min(decimals, DECIMALS));
  return Number(text) === 0 ? '0' : text.replace('-', '\u2212').replace(/^(\D?)0\./, '$1.');
}

export function realTick(value: number): string {
  return Number(value.toPrecision(3)).toString().replace('-', '\u2212');
}

/** How far off a value may be, in the metric's unit. */
function errorText({ isShare }: ShownMetric, error: number): string {
  return isShare ? `${(error * 100).toFixed(1)}${NBSP}pp` : formatReal(error);
}

/** A value with its error, where it has one: `≈ 51.2 % ± 1.5 pp`. */
export function valueText(metric: ShownMetric, measured: Measured): string {
  const [value, error] = valueParts(metric, measured);
  return error === null ? value : `≈${NBSP}${value} ${error}`;
}

/** A value, and `± …` where it is predicted. */
export function valueParts(metric: ShownMetric, { value, error }: Measured): [string, string | null] {
  return [metric.format(value), error > 0 ? `±${NBSP}${errorText(metric, error)}` : null];
}
