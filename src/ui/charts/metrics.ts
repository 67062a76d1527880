/**
 * Metrics of the Layers tab: one row each, with its words and its computation. The picker, the charts, the inspector, the
 * files and the address follow from the rows. Pure.
 */

import { formatFixed, formatPercent, formatReal } from '../../formats/quantity';
import { awaitsMerge, isPredicted, sampledError } from '../../merge/prediction/predicted-report';
import type { TensorReport } from '../../reports/job';
import {
  chanceOverlap,
  changing,
  cosineOf,
  digits,
  effectOf,
  keptEnergy,
  type Measured,
  type MethodTraits,
  ofContributor,
  outputChangeOf,
  overlapOfModels,
  realTick,
  SHARE,
  type ShownMetric,
  SIZE,
  shareOf,
  untouchedByChance,
} from './measured';

interface MetricRow extends ShownMetric {
  /** As the address and the files have it. */
  id: string;
  /** One chart per contributor, per pair of contributors, or one for the tensor as a whole. */
  per: 'contributor' | 'pair' | 'tensor';
  /** Follows from the method: not known from the changes alone. */
  ofMerge: boolean;
  /** Rank among the metrics that Layers opens on, the most telling for most merges first; absent: never opened on. */
  interest?: number;
  /** There is one without a base, too. */
  baseless?: true;
  /** The value of a tensor that is not copied, or null where it has none. */
  measure(report: TensorReport, subject: Subject): Measured | null;
  /** Why a recipe does not have it, or null. Bases and numbers of models are seen to. */
  whyAbsent?(traits: MethodTraits): string | null;
  /** Whether the report of a merge that names no base lacks it. */
  lacks?(report: TensorReport): boolean;
  /** Expected value for random masks of the same sizes. */
  chance?(report: TensorReport, subject: Subject): number | null;
}

/** Contributor ids of a value, by the metric's `per`: one, two or none. */
export type Subject = readonly string[];

const UNCHANGED = 'not changed by this model';
const TOO_FEW = 'changed by fewer than two models';

const trimsNothing = ({ trims, title }: MethodTraits) =>
  trims ? null : `${title} trims nothing: every change is kept.`;

const noMasks = ({ countsKept, trims, title }: MethodTraits) =>
  countsKept
    ? `${title} counts the changes that it keeps, and leaves no mask to compare.`
    : trims
      ? null
      : `${title} trims nothing, so there are no masks to compare.`;

const countsOnly = ({ countsKept, title }: MethodTraits) =>
  countsKept ? `${title} counts the changes that it keeps, and does not measure their size.` : null;

const hasNoCount = (report: TensorReport) => (report.counts?.atBase ?? null) === null;
const hasNoBase = (report: TensorReport) => report.baseNorm === 0;

/** What changes do to a text. Reports of merges that have not run are of no concern: it is measured on the text. */
const EFFECT = {
  ...SIZE,
  absent: 'no linear map of a layer',
  full: { min: Number.NEGATIVE_INFINITY, max: null },
  diverging: true,
  ofMerge: false,
  format: (v: number) => `${signed(v)} nats`,
  phrase: (v: number) => `${signed(v)} nats`,
  measure: effectOf,
} as const;

const ROWS = [
  {
    ...SHARE,
    id: 'mergedSparsity',
    label: 'Merged sparsity',
    meaning: 'Share of weights that the merge leaves exactly at the base.',
    per: 'tensor',
    absent: 'not compared with a base',
    ofMerge: true,
    phrase: (v) => `${formatPercent(v)} at the base`,
    interest: 2,
    measure: (report) => {
      const atBase = report.counts?.atBase ?? null;
      return atBase === null || report.elements === 0 ? null : shareOf(report, atBase, report.elements);
    },
    lacks: hasNoCount,
    chance: untouchedByChance,
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
    interest: 1,
    measure: outputChangeOf,
    lacks: hasNoCount,
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
    measure: (report) => {
      const keepsNone = isPredicted(report) ? report.exactChange : report.counts?.shared.length === 0;
      if (changing(report).length < 2 || keepsNone) return null;
      const { signConflict: value, elements } = report;
      return { value, weight: elements, error: sampledError(report, value, elements) };
    },
    whyAbsent: ({ contributors, preset, title }) =>
      contributors < 2
        ? 'One model alone has no conflicts.'
        : preset
          ? null
          : `${title} does not look at signs.`,
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
    measure: ofContributor(({ c, report: { elements }, error }) => ({
      value: 1 - c.kept / elements,
      weight: elements,
      error: error?.kept ?? 0,
    })),
    whyAbsent: (traits) => (traits.countsKept || traits.isSolved ? null : trimsNothing(traits)),
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
    interest: 4,
    measure: ofContributor(({ report, i }) => {
      const lost = report.counts?.lost[i];
      const kept = report.counts?.shared[i]?.[i];
      return lost === undefined || !kept ? null : shareOf(report, lost, kept);
    }),
    whyAbsent: ({ preset, contributors, title }) =>
      contributors < 2
        ? 'One model alone wins every vote.'
        : preset && preset.consensus !== 'none'
          ? null
          : `${title} elects no sign, so no change is lost in a vote.`,
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
    interest: 5,
    measure: ofContributor(({ c, error }) => {
      const value = keptEnergy(c);
      return value === null ? null : { value, weight: c.norm ** 2, error: error?.energy ?? 0 };
    }),
    whyAbsent: (traits) => countsOnly(traits) ?? (traits.isSolved ? null : trimsNothing(traits)),
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
    interest: 6,
    measure: ofContributor(({ c, report: { baseNorm, elements } }) =>
      baseNorm > 0 ? { value: c.norm / baseNorm, weight: elements, error: 0 } : null,
    ),
    lacks: hasNoBase,
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
    interest: 3,
    measure: overlapOfModels,
    whyAbsent: noMasks,
    chance: chanceOverlap,
  },
  {
    ...EFFECT,
    id: 'effect',
    label: 'Effect on the text',
    meaning:
      'How much more probable each change makes the text written last in Try, in nats: exact, one change left out at a time.',
    per: 'tensor',
  },
  {
    ...EFFECT,
    id: 'modelEffect',
    label: 'Effect of the model',
    meaning:
      'How much more probable this model makes the text written last in Try, in nats: exact, one tensor at a time merged without it.',
    per: 'contributor',
    whyAbsent: ({ contributors, method: { models }, title }) =>
      contributors > 1 && contributors <= models.min
        ? `${title} merges at least ${models.min} models: there is no merge without one of them. “Effect on the text” shows them together.`
        : null,
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
    short: digits,
    tick: realTick,
    phrase: (v) => `cosine ${cosineText(v)}`,
    interest: 7,
    baseless: true,
    measure: cosineOf,
    lacks: hasNoBase,
  },
] as const satisfies readonly MetricRow[];

export type MetricId = (typeof ROWS)[number]['id'];
export type Metric = MetricRow & { id: MetricId };

export const metrics: readonly Metric[] = ROWS;

const byId = new Map(metrics.map((m) => [m.id, m]));

export function metricById(id: MetricId): Metric {
  return byId.get(id) as Metric;
}

/** The metric of one tensor, or null where it has none: a copied tensor, or one the subject does not change. */
export function measure(metric: Metric, report: TensorReport, subject: Subject): Measured | null {
  return report.copied ? null : metric.measure(report, subject);
}

/** Whether a report lacks a metric because the method has not run and cannot be predicted. */
export function isAwaited(metric: Metric, report: TensorReport): boolean {
  return metric.ofMerge && awaitsMerge(report);
}

function signed(value: number): string {
  return value > 0 ? `+${formatReal(value)}` : formatReal(value);
}

function cosineText(value: number): string {
  return formatFixed(value, 2);
}
