/**
 * What the Layers tab can show, each number drawn from a tensor's report. Pure. A value comes with the weight it has in a
 * mean over several tensors, so that the mean of a layer is the value of the layer taken as one tensor, and with its
 * error, which is 0 where the value was counted or follows from counts.
 */

import { formatPercent, formatReal, NBSP } from '../../formats/quantity';
import { awaitsMerge, isPredicted, sampledError } from '../../merge/prediction/predicted-report';
import type { ContributorReport, TensorReport } from '../../reports/job';
import { overlapOfModels, overlapOfRuns } from './mask-overlap';

export type MetricId =
  | 'mergedSparsity'
  | 'outputChange'
  | 'signConflict'
  | 'trimmed'
  | 'lostInVote'
  | 'keptEnergy'
  | 'effectiveNorm'
  | 'threshold'
  | 'size'
  | 'overlap'
  | 'runOverlap'
  | 'cosine';

/** What a chart needs to know of the number it shows. */
export interface ShownMetric {
  /** In the metric picker. */
  label: string;
  /** One line below the picker: what the number is. */
  meaning: string;
  /** Where colours begin and end on the full scale; null: at the largest value there is. */
  full: { min: number; max: number | null };
  /** 0 is the middle, and the sign matters. */
  diverging: boolean;
  /** The number with its unit. */
  format(value: number): string;
  /** The same for the ends of a scale, which are round. */
  tick(value: number): string;
  /** The number without its unit, as short as can be, for a cell. */
  short?(value: number): string;
  /** The number as words for a cell: `80.1 % zero`. */
  phrase(value: number): string;
  /** What is said of a tensor that was reached and has no value. */
  absent: string;
}

export interface Metric extends ShownMetric {
  id: MetricId;
  /** One chart per contributor, per pair of contributors, or one for the tensor as a whole. */
  per: 'contributor' | 'pair' | 'tensor';
  /** Follows from the method: not known from the changes alone. */
  ofMerge: boolean;
  /** The value is a share: differences are in percentage points. */
  isShare: boolean;
}

export interface Measured {
  value: number;
  weight: number;
  /** The value lies within ± error. */
  error: number;
}

/** Whose value: contributor ids, by the metric's `per`: one, two or none. */
export type Subject = readonly string[];

const UNCHANGED = 'not changed by this model';
const TOO_FEW = 'changed by fewer than two models';

/** What metrics that are a share of something have in common. */
const SHARE = {
  full: { min: 0, max: 1 },
  diverging: false,
  isShare: true,
  format: formatPercent,
  tick: percentTick,
  short: (share: number) => Math.round(share * 100).toString(),
} as const;

/** Sizes, from 0 up. */
const SIZE = {
  full: { min: 0, max: null },
  diverging: false,
  isShare: false,
  format: formatReal,
  tick: realTick,
  short: shortReal,
} as const;

export const metrics: readonly Metric[] = [
  {
    ...SHARE,
    id: 'mergedSparsity',
    label: 'Merged sparsity',
    meaning: 'Share of weights that the merge leaves exactly at the base.',
    per: 'tensor',
    absent: 'not compared with a base',
    ofMerge: true,
    phrase: (v) => `${formatPercent(v)} at the base`,
  },
  {
    ...SIZE,
    id: 'outputChange',
    label: 'Relative change',
    meaning: '‖ΔW‖ / ‖W‖: how far the merged tensor is from the base, relative to the base’s norm.',
    per: 'tensor',
    absent: 'not compared with a base',
    ofMerge: true,
    phrase: (v) => `changed by ${formatReal(v)} of its norm`,
  },
  {
    ...SHARE,
    id: 'signConflict',
    label: 'Sign conflict',
    meaning: 'Share of weights where kept changes of different models pull in opposite directions.',
    per: 'tensor',
    absent: TOO_FEW,
    ofMerge: true,
    phrase: (v) => `${formatPercent(v)} sign conflict`,
  },
  {
    ...SHARE,
    id: 'trimmed',
    label: 'Trimmed',
    meaning: 'Share of the model’s changes that the method sets to zero before models are combined.',
    per: 'contributor',
    absent: UNCHANGED,
    ofMerge: true,
    phrase: (v) => `${formatPercent(v)} trimmed`,
  },
  {
    ...SHARE,
    id: 'lostInVote',
    label: 'Lost in the sign election',
    meaning: 'Share of the model’s kept changes that the sign election drops.',
    per: 'contributor',
    absent: UNCHANGED,
    ofMerge: true,
    phrase: (v) => `${formatPercent(v)} lost in the sign election`,
  },
  {
    ...SHARE,
    id: 'keptEnergy',
    label: 'Kept energy',
    meaning: 'Share of ‖τ‖² that the kept changes carry, before rescaling.',
    per: 'contributor',
    absent: UNCHANGED,
    ofMerge: true,
    phrase: (v) => `${formatPercent(v)} of the energy kept`,
  },
  {
    ...SIZE,
    id: 'effectiveNorm',
    label: 'Effective norm',
    meaning: '‖τ̂‖ / ‖τ‖: what enters the sum after trimming and rescaling; 1 is the model’s whole change.',
    per: 'contributor',
    absent: UNCHANGED,
    ofMerge: true,
    phrase: (v) => `${formatReal(v)} of its norm after rescaling`,
  },
  {
    ...SIZE,
    id: 'threshold',
    label: 'Threshold',
    meaning: 'Smallest change, as |τ|, that is kept.',
    per: 'contributor',
    absent: UNCHANGED,
    ofMerge: true,
    phrase: (v) => `threshold ${formatReal(v)}`,
  },
  {
    ...SIZE,
    id: 'size',
    label: 'Task vector size',
    meaning: '‖τ‖ / ‖W‖: how far the model is from the base, relative to the base’s norm.',
    per: 'contributor',
    absent: UNCHANGED,
    ofMerge: false,
    phrase: (v) => `changed by ${formatReal(v)} of the base’s norm`,
  },
  {
    ...SHARE,
    id: 'overlap',
    label: 'Mask overlap',
    meaning: 'Weights that both models keep, as a share of those that either keeps (IoU).',
    per: 'pair',
    absent: TOO_FEW,
    ofMerge: true,
    phrase: (v) => `overlap ${formatPercent(v)}`,
  },
  {
    ...SHARE,
    id: 'runOverlap',
    label: 'Mask overlap of two runs',
    meaning: 'Weights of the model that both runs keep, as a share of those that either keeps (IoU).',
    per: 'contributor',
    absent: 'not trimmed by both runs',
    ofMerge: true,
    phrase: (v) => `overlap ${formatPercent(v)}`,
  },
  {
    id: 'cosine',
    label: 'Cosine',
    meaning: 'Do two models change a tensor in the same direction? 1 the same, 0 unrelated, −1 opposite.',
    per: 'pair',
    absent: TOO_FEW,
    full: { min: -1, max: 1 },
    diverging: true,
    ofMerge: false,
    isShare: false,
    format: cosineText,
    short: (v) => v.toFixed(1).replace('-', '\u2212').replace('0.', '.'),
    tick: realTick,
    phrase: (v) => `cosine ${cosineText(v)}`,
  },
];

const byId = new Map(metrics.map((m) => [m.id, m]));

export function metricById(id: MetricId): Metric {
  return byId.get(id) as Metric;
}

/** The metric of one tensor, or null where it has none: a copied tensor, or one the subject does not change. */
export function measure(metric: MetricId, report: TensorReport, subject: Subject): Measured | null {
  if (report.copied) return null;
  const { elements } = report;
  switch (metric) {
    case 'mergedSparsity': {
      const atBase = report.counts?.atBase;
      if (atBase === undefined || atBase === null || elements === 0) return null;
      return {
        value: atBase / elements,
        weight: elements,
        error: sampledError(report, atBase / elements, elements),
      };
    }
    case 'outputChange': {
      if (report.outputChange === 0 && report.counts?.atBase === null) return null;
      return {
        value: report.outputChange,
        weight: elements,
        error:
          isPredicted(report) && !report.exactChange ? report.outputChange * changeError(report.sampled) : 0,
      };
    }
    case 'signConflict': {
      const { signConflict: value } = report;
      const keepsNone = isPredicted(report) ? report.exactChange : report.counts?.shared.length === 0;
      return changing(report).length < 2 || keepsNone
        ? null
        : { value, weight: elements, error: sampledError(report, value, elements) };
    }
    case 'cosine': {
      const i = report.contributors.findIndex((c) => c.id === subject[0] && c.norm > 0);
      const j = report.contributors.findIndex((c) => c.id === subject[1] && c.norm > 0);
      const value = report.cosine[i]?.[j];
      return value === undefined ? null : { value, weight: elements, error: 0 };
    }
    case 'overlap':
      return overlapOfModels(report, subject);
    case 'runOverlap':
      return overlapOfRuns(report, subject);
    default:
      return ofContributor(metric, report, subject[0]);
  }
}

function ofContributor(metric: MetricId, report: TensorReport, id: string | undefined): Measured | null {
  // a step of a slider asks a thousand times
  const i = report.contributors.findIndex((c) => c.id === id && c.norm > 0);
  const c = report.contributors[i];
  if (!c) return null;
  // of a predicted report the counts are worked out when they are looked at
  const { elements } = report;
  const error = isPredicted(report) ? report.errors[i] : undefined;
  switch (metric) {
    case 'trimmed':
      return { value: 1 - c.kept / elements, weight: elements, error: error?.kept ?? 0 };
    case 'keptEnergy': {
      const value = keptEnergy(c);
      return value === null ? null : { value, weight: c.norm ** 2, error: error?.energy ?? 0 };
    }
    case 'effectiveNorm': {
      if (c.rescaledNorm === undefined) return null;
      const value = c.rescaledNorm / c.norm;
      return { value, weight: c.norm ** 2, error: value * ((error?.energy ?? 0) / 2) };
    }
    case 'threshold':
      return { value: c.threshold, weight: elements, error: c.threshold * (error?.threshold ?? 0) };
    case 'lostInVote': {
      const lost = report.counts?.lost[i];
      const kept = report.counts?.shared[i]?.[i];
      if (lost === undefined || !kept) return null;
      return { value: lost / kept, weight: kept, error: sampledError(report, lost / kept, kept) };
    }
    default:
      return report.baseNorm > 0 ? { value: c.norm / report.baseNorm, weight: elements, error: 0 } : null;
  }
}

/** Relative error of a root mean square over a sample; sums of squares of weights have heavy tails. */
function changeError(sampled: number): number {
  return sampled > 0 ? 5 / Math.sqrt(2 * sampled) : 1;
}

/** Whether a report says nothing about a metric because the method has not run and cannot be predicted. */
export function isAwaited(metric: Metric, report: TensorReport): boolean {
  return metric.ofMerge && awaitsMerge(report);
}

/** ‖kept τ‖² / ‖τ‖², 0 for a zero task vector; null where only the rescaled norm is known. */
export function keptEnergy(c: ContributorReport): number | null {
  if (c.keptNorm === null) return null;
  return c.norm > 0 ? (c.keptNorm / c.norm) ** 2 : 0;
}

/** The least and the largest of values, of which there may be more than a call takes arguments. */
export function rangeOf(values: readonly number[]): { least: number; most: number } {
  let least = Number.POSITIVE_INFINITY;
  let most = Number.NEGATIVE_INFINITY;
  for (const value of values) {
    if (value < least) least = value;
    if (value > most) most = value;
  }
  return { least, most };
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

function cosineText(value: number): string {
  return value.toFixed(2).replace('-', '\u2212');
}

export function percentTick(share: number): string {
  return `${realTick(share * 100)}${NBSP}%`;
}

/** Two digits, or one below a hundredth: `12`, `1.2`, `.12`, `.004`. */
function shortReal(value: number): string {
  const size = Math.abs(value);
  const text =
    size >= 10
      ? value.toFixed(0)
      : size >= 1
        ? value.toFixed(1)
        : size >= 0.01
          ? value.toFixed(2)
          : value.toPrecision(1);
  return text.replace('0.', '.');
}

export function realTick(value: number): string {
  return Number(value.toPrecision(3)).toString().replace('-', '\u2212');
}

/** The contributors that change the tensor. An adapter that leaves it alone is reported too, with a zero vector. */
export function changing(report: TensorReport): ContributorReport[] {
  return report.contributors.filter((c) => c.norm > 0);
}

/** How far off a value may be, in the metric's unit. */
function errorText({ isShare }: Pick<Metric, 'isShare'>, error: number): string {
  return isShare ? `${(error * 100).toFixed(1)}${NBSP}pp` : formatReal(error);
}

/** A value with its error, where it has one: `≈ 51.2 % ± 1.5 pp`. */
export function valueText(metric: Metric, { value, error }: Measured): string {
  return error > 0
    ? `≈${NBSP}${metric.format(value)} ±${NBSP}${errorText(metric, error)}`
    : metric.format(value);
}
