/**
 * What the layer × module charts can show, each drawn from a tensor's report. Pure. A value comes with the weight it
 * has in a mean over several tensors, so that the mean of a layer is the value of the layer taken as one tensor.
 */

import type { ForetoldReport } from '../../merge/profile/foretell-report';
import type { ContributorReport, TensorReport } from '../../reports/job';
import { formatCount, formatCounted, formatPercent, formatReal, NBSP } from '../format/quantity';

export type MetricId =
  | 'sparsity'
  | 'keptEnergy'
  | 'threshold'
  | 'size'
  | 'signConflict'
  | 'cosine'
  | 'outputChange'
  | 'nonFinite';

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
}

export interface Measured {
  value: number;
  weight: number;
}

/** Whose value: contributor ids, by the metric's `per`: one, two or none. */
export type Subject = readonly string[];

const UNCHANGED = 'not changed by this model';
const TOO_FEW = 'changed by fewer than two models';

export const metrics: readonly Metric[] = [
  {
    id: 'sparsity',
    label: 'Sparsity',
    meaning: 'Share of each model’s changes that the method sets to zero.',
    per: 'contributor',
    absent: UNCHANGED,
    full: { min: 0, max: 1 },
    diverging: false,
    ofMerge: true,
    format: formatPercent,
    tick: percentTick,
    phrase: (v) => `${formatPercent(v)} zero`,
  },
  {
    id: 'keptEnergy',
    label: 'Kept energy',
    meaning:
      'Share of the squared norm of each model’s change that the kept part carries: how much survives.',
    per: 'contributor',
    absent: UNCHANGED,
    full: { min: 0, max: 1 },
    diverging: false,
    ofMerge: true,
    format: formatPercent,
    tick: percentTick,
    phrase: (v) => `${formatPercent(v)} of the energy kept`,
  },
  {
    id: 'threshold',
    label: 'Threshold',
    meaning: 'Smallest change, as |τ|, that is kept; 0 where nothing is cut off by size.',
    per: 'contributor',
    absent: UNCHANGED,
    full: { min: 0, max: null },
    diverging: false,
    ofMerge: true,
    format: formatReal,
    tick: realTick,
    phrase: (v) => `threshold ${formatReal(v)}`,
  },
  {
    id: 'size',
    label: '‖τ‖ / ‖W‖',
    meaning: 'Size of each model’s change, as a part of the base’s norm.',
    per: 'contributor',
    absent: UNCHANGED,
    full: { min: 0, max: null },
    diverging: false,
    ofMerge: false,
    format: formatReal,
    tick: realTick,
    phrase: (v) => `changed by ${formatReal(v)} of the base’s norm`,
  },
  {
    id: 'signConflict',
    label: 'Sign conflict',
    meaning: 'Share of weights where kept changes of different models pull in opposite directions.',
    per: 'tensor',
    absent: TOO_FEW,
    full: { min: 0, max: null },
    diverging: false,
    ofMerge: true,
    format: formatPercent,
    tick: percentTick,
    phrase: (v) => `${formatPercent(v)} sign conflict`,
  },
  {
    id: 'outputChange',
    label: 'Change',
    meaning: 'How far the merged tensor is from the base, as a part of the base’s norm.',
    per: 'tensor',
    absent: TOO_FEW,
    full: { min: 0, max: null },
    diverging: false,
    ofMerge: true,
    format: formatReal,
    tick: realTick,
    phrase: (v) => `changed by ${formatReal(v)} of its norm`,
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
    format: cosineText,
    tick: realTick,
    phrase: (v) => `cosine ${cosineText(v)}`,
  },
  {
    id: 'nonFinite',
    label: 'NaN, Inf',
    meaning: 'Values that are not finite numbers, in the models and in the result.',
    per: 'tensor',
    absent: TOO_FEW,
    full: { min: 0, max: null },
    diverging: false,
    ofMerge: false,
    format: formatCount,
    tick: realTick,
    phrase: (v) => (v === 0 ? 'all values finite' : `${formatCounted(v, 'value')} not finite`),
  },
];

export function metricById(id: MetricId): Metric {
  return metrics.find((m) => m.id === id) as Metric;
}

/** The metric of one tensor, or null where it has none: a copied tensor, or one the subject does not change. */
export function measure(metric: MetricId, report: TensorReport, subject: Subject): Measured | null {
  if (report.copied) return null;
  const elements = report.elements;
  switch (metric) {
    case 'sparsity': {
      const c = contributor(report, subject[0]);
      return c && { value: 1 - c.kept / elements, weight: elements };
    }
    case 'keptEnergy': {
      const c = contributor(report, subject[0]);
      return c && { value: keptEnergy(c), weight: c.norm ** 2 };
    }
    case 'threshold': {
      const c = contributor(report, subject[0]);
      return c && { value: c.threshold, weight: elements };
    }
    case 'size': {
      const c = contributor(report, subject[0]);
      return c && report.baseNorm > 0 ? { value: c.norm / report.baseNorm, weight: elements } : null;
    }
    case 'nonFinite':
      return { value: report.nonFinite, weight: 1 };
    case 'signConflict':
      return changing(report).length < 2 ? null : { value: report.signConflict, weight: elements };
    case 'outputChange':
      return { value: report.outputChange, weight: elements };
    case 'cosine': {
      const i = report.contributors.findIndex((c) => c.id === subject[0] && c.norm > 0);
      const j = report.contributors.findIndex((c) => c.id === subject[1] && c.norm > 0);
      const value = report.cosine[i]?.[j];
      return value === undefined ? null : { value, weight: elements };
    }
  }
}

/** Whether a report says nothing about a metric because the method has not run and cannot be foretold. */
export function awaitsMerge(metric: Metric, report: TensorReport | ForetoldReport): boolean {
  return metric.ofMerge && 'foretold' in report && report.foretold === 'changes';
}

/** ‖kept τ‖² / ‖τ‖², 0 for a zero task vector. */
export function keptEnergy(c: ContributorReport): number {
  return c.norm > 0 ? (c.keptNorm / c.norm) ** 2 : 0;
}

/** The weighted mean, or null when nothing was measured. */
export function mean(values: readonly (Measured | null | undefined)[]): number | null {
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

export function realTick(value: number): string {
  return Number(value.toPrecision(3)).toString().replace('-', '\u2212');
}

/** The contributors that change the tensor. An adapter that leaves it alone is reported too, with a zero vector. */
export function changing(report: TensorReport): ContributorReport[] {
  return report.contributors.filter((c) => c.norm > 0);
}

function contributor(report: TensorReport, id: string | undefined): ContributorReport | null {
  // a step of a slider asks a thousand times
  for (const c of report.contributors) if (c.id === id && c.norm > 0) return c;
  return null;
}
