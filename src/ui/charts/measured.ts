import { formatPercent, formatReal, NBSP } from '../../formats/quantity';
import type { DeltaPreset, MergeMethod, ResolvedParameters } from '../../merge/method';
import { type ContributorError, isPredicted, sampledError } from '../../merge/prediction/predicted-report';
import type { ContributorReport, TensorReport } from '../../reports/job';
import { methodName } from '../format/method-name';

/**
 * Values measured from the report of a tensor. Each has its weight in a mean over several tensors, so that the mean of a
 * layer is the value of the layer taken as one tensor, and its error: 0 where it was counted. Also the traits of a recipe
 * that decide which values exist. Pure.
 */

export interface Measured {
  value: number;
  weight: number;
  /** The value lies within ± error. */
  error: number;
}

/** Traits of a recipe that decide which metrics exist. */
export interface RecipeTraits {
  method: MergeMethod;
  /** Of the method as a whole, resolved. */
  parameters: ResolvedParameters;
  contributors: number;
  hasBase: boolean;
}

/** Traits, and their consequences by the method. */
export interface MethodTraits extends RecipeTraits {
  title: string;
  /** Of a method of the delta pipeline. */
  preset: DeltaPreset | undefined;
  /** Some changes are set to zero before models are combined. */
  trims: boolean;
  /** The kept changes are counted, one by one, and nothing else about them is measured. */
  countsKept: boolean;
  isSolved: boolean;
}

/** Adds the consequences of the method to the traits of a recipe. */
export function methodTraits(traits: RecipeTraits): MethodTraits {
  const { compute } = traits.method;
  const preset = compute.kind === 'delta' ? compute.preset(traits.parameters) : undefined;
  return {
    ...traits,
    title: methodName(traits.method),
    preset,
    trims: preset !== undefined && preset.select !== 'all',
    countsKept: compute.kind === 'elementwise' && compute.counters !== undefined,
    isSolved: compute.kind === 'solved',
  };
}

/** A share of `of` elements of a tensor. */
export function shareOf(report: TensorReport, count: number, of: number): Measured {
  return { value: count / of, weight: of, error: sampledError(report, count / of, of) };
}

/** Relative change of the output; null where there is no base to compare with. */
export function outputChangeOf(report: TensorReport): Measured | null {
  const { outputChange, counts, elements } = report;
  if (outputChange === 0 && counts?.atBase === null) return null;
  const isSampled = isPredicted(report) && !report.exactChange;
  return {
    value: outputChange,
    weight: elements,
    error: isSampled ? outputChange * changeError(report.sampled) : 0,
  };
}

/** Relative error of a root mean square over a sample; sums of squares of weights have heavy tails. */
function changeError(sampled: number): number {
  return sampled > 0 ? 5 / Math.sqrt(2 * sampled) : 1;
}

/** Cosine of two contributors that both change the tensor. */
export function cosineOf(
  { contributors, cosine, elements }: TensorReport,
  [a, b]: readonly string[],
): Measured | null {
  const i = contributors.findIndex((c) => c.id === a && c.norm > 0);
  const j = contributors.findIndex((c) => c.id === b && c.norm > 0);
  const value = cosine[i]?.[j];
  return value === undefined ? null : { value, weight: elements, error: 0 };
}

/** Part of a report on one contributor. */
interface ContributorView {
  c: ContributorReport;
  report: TensorReport;
  /** Its index in the report. */
  i: number;
  /** Of a predicted report. */
  error: ContributorError | undefined;
}

/** A measurement of one contributor; null for a tensor that it does not change. */
export function ofContributor(measure: (view: ContributorView) => Measured | null) {
  return (report: TensorReport, [id]: readonly string[]): Measured | null => {
    // a step of a slider asks a thousand times
    const i = report.contributors.findIndex((c) => c.id === id && c.norm > 0);
    const c = report.contributors[i];
    return c ? measure({ c, report, i, error: isPredicted(report) ? report.errors[i] : undefined }) : null;
  };
}

/** ‖kept τ‖² / ‖τ‖², 0 for a zero task vector; null where only the rescaled norm is known. */
export function keptEnergy(c: ContributorReport): number | null {
  if (c.keptNorm === null) return null;
  return c.norm > 0 ? (c.keptNorm / c.norm) ** 2 : 0;
}

/** The contributors that change the tensor. An adapter that leaves it alone is reported too, with a zero vector. */
export function changing(report: TensorReport): ContributorReport[] {
  return report.contributors.filter((c) => c.norm > 0);
}

/** `b` − `a`, with the error of both and the weight of `b`. */
export function differenceIn(a: Measured, b: Measured): Measured {
  return { value: b.value - a.value, weight: b.weight, error: a.error + b.error };
}

/** The weighted mean, or null when nothing was measured. */
export function mean(
  values: readonly (Pick<Measured, 'value' | 'weight'> | null | undefined)[],
): number | null {
  let sum = 0;
  let weight = 0;
  for (const v of values) {
    if (!v) continue;
    sum += v.value * v.weight;
    weight += v.weight;
  }
  return weight > 0 ? sum / weight : null;
}

/** The least and the largest of values, which may be more than a call takes arguments. */
export function rangeOf(values: readonly number[]): { least: number; most: number } {
  let least = Number.POSITIVE_INFINITY;
  let most = Number.NEGATIVE_INFINITY;
  for (const value of values) {
    if (value < least) least = value;
    if (value > most) most = value;
  }
  return { least, most };
}

/** A tensor of a run, with what its changes do to a text: that of a contributor by its id, all of them by `''`. */
export interface EffectReport extends TensorReport {
  effects: ReadonlyMap<string, number>;
}

/** The effect of a tensor on the text; none where it was not measured, and of what is no linear map of a block. */
export function effectOf(report: TensorReport | EffectReport, [id = '']: readonly string[]): Measured | null {
  const value = 'effects' in report ? report.effects.get(id) : undefined;
  return value === undefined ? null : { value, weight: 1, error: 0 };
}

/** The changes that two contributors both keep, as a share of the union of their masks. */
export function overlapOfModels(report: TensorReport, subject: readonly string[]) {
  const found = countsOfModels(report, subject);
  const measured = found && overlapOf(found);
  return measured && { ...measured, error: sampledError(report, measured.value, measured.weight) };
}

/** The share of weights that no model would change, were masks drawn at random; null where there are no masks. */
export function untouchedByChance(report: TensorReport): number | null {
  const { contributors, elements } = report;
  if (contributors.every((c) => c.norm === 0 || c.kept === elements)) return null;
  if (isPredicted(report)) {
    if (report.exactChange || report.predicted === 'changes') return null;
    return contributors.reduce((share, c) => (c.norm > 0 ? share * (1 - c.kept / elements) : share), 1);
  }
  const shared = report.counts?.shared ?? [];
  return shared.length > 0 ? shared.reduce((share, row, i) => share * (1 - row[i]! / elements), 1) : null;
}

/** Expected overlap of two random masks of the same densities: pq / (p + q − pq); null where nothing is masked. */
export function chanceOverlap(report: TensorReport, subject: readonly string[]): number | null {
  const counts = countsOfModels(report, subject);
  const [p, q] = (counts?.kept ?? [0, 0]).map((kept) => kept / report.elements) as [number, number];
  return p + q > 0 && p * q < 1 ? (p * q) / (p + q - p * q) : null;
}

interface Counts {
  kept: readonly [number, number];
  both: number;
}

/** The share, and the union of the masks as its weight in a mean. */
function overlapOf({ kept, both }: Counts) {
  const union = kept[0] + kept[1] - both;
  return union > 0 ? { value: both / union, weight: union, error: 0 } : null;
}

function countsOfModels(report: TensorReport, [a, b]: readonly string[]): Counts | null {
  const shared = report.counts?.shared;
  const i = report.contributors.findIndex((c) => c.id === a);
  const j = report.contributors.findIndex((c) => c.id === b);
  const both = shared?.[i]?.[j];
  return both === undefined ? null : { kept: [shared![i]![i]!, shared![j]![j]!], both };
}

// Properties of a metric that charts need, and its numbers as text. Pure.

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

/** The same where there is no room for the error: `≈ 51.2 %`. */
export function roughText({ format }: ShownMetric, { value, error }: Measured): string {
  return `${error > 0 ? `≈${NBSP}` : ''}${format(value)}`;
}

/** A value, and `± …` where it is predicted. */
export function valueParts(metric: ShownMetric, { value, error }: Measured): [string, string | null] {
  return [metric.format(value), error > 0 ? `±${NBSP}${errorText(metric, error)}` : null];
}
