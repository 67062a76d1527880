/**
 * Which number the Layers tab opens on, of whom, which numbers a recipe does not have, why a picture is of one color, and how two
 * runs differ in a number. Pure.
 */
import { formatFixed, NBSP } from '../../formats/quantity';
import type { Contributor } from '../state/runs';
import { type Measured, methodTraits, type RecipeTraits, realTick, type ShownMetric } from './measured';
import { type Metric, type MetricId, metrics, type Subject } from './metrics';

/** Why a metric does not exist for a recipe, or null. */
export function absenceOf(metric: Metric, traits: RecipeTraits): string | null {
  if (metric.per === 'pair' && traits.contributors < 2) {
    return `${metric.label} compares two models; this recipe has only one.`;
  }
  if (!traits.hasBase && !metric.baseless) return `Without a base there are no changes to look at.`;
  return metric.whyAbsent?.(methodTraits(traits)) ?? null;
}

/** Metrics in the order in which they are offered. */
const BY_INTEREST = metrics
  .filter((metric) => metric.interest !== undefined)
  .sort((a, b) => a.interest! - b.interest!);

/** Shares that differ by less than this, and sizes by less than this part of themselves, look the same. */
const FLAT = { share: 0.002, size: 0.01 };

/** Whether values differ so little that their picture is of one color. */
export function isFlat({ full }: ShownMetric, values: readonly number[]): boolean {
  if (values.length < 2) return true;
  const sorted = [...values].sort((a, b) => a - b);
  const at = (p: number) => sorted[Math.round(p * (sorted.length - 1))]!;
  const range = at(0.98) - at(0.02);
  return range <= (full.max !== null ? FLAT.share : FLAT.size * Math.abs(at(0.5)));
}

/** Values of a metric over the linear layers, with their errors. */
type MeasuredOf = (metric: Metric) => readonly Pick<Measured, 'value' | 'error'>[];

/** Whether the errors of predicted values are about as large as their spread. */
function isHidden(measured: ReturnType<MeasuredOf>): boolean {
  const middle = (of: readonly number[], p: number) => of[Math.round(p * (of.length - 1))] ?? 0;
  const values = measured.map((m) => m.value).sort((a, b) => a - b);
  const error = middle(
    measured.map((m) => m.error).sort((a, b) => a - b),
    0.5,
  );
  return error > 0 && middle(values, 0.98) - middle(values, 0.02) < 4 * error;
}

/**
 * The metric to open on: the first that the recipe has by what its method tells and by interest, that has values, and whose errors do not hide them; if
 * there is none, the first with values.
 * @param compares runs are compared: metrics of the models alone are equal in all runs and left out
 */
export function defaultMetric(traits: RecipeTraits, measuredOf: MeasuredOf, compares = false): MetricId {
  const there = metricsOf(traits, compares);
  const known = there.filter((m) => measuredOf(m).length > 0);
  return (known.find((m) => !isHidden(measuredOf(m))) ?? known[0] ?? there[0] ?? metrics[0]!).id;
}

/** Metrics of a recipe, first what its method tells, then by interest; where runs are compared, only those that merging decides. */
function metricsOf(traits: RecipeTraits, compares: boolean): Metric[] {
  const isTold = ({ id }: Metric) => Number(id === traits.method.tells?.metric);
  return BY_INTEREST.filter(
    (metric) => absenceOf(metric, traits) === null && (metric.ofMerge || !compares),
  ).toSorted((a, b) => isTold(b) - isTold(a));
}

/** A metric's differences as a metric of their own: signed, colored around 0. */
export function differenceMetric(metric: Metric): Metric {
  const signed =
    <A extends unknown[]>(text: (value: number, ...more: A) => string) =>
    (value: number, ...more: A) => {
      const said = text(value, ...more);
      return value > 0 && /[1-9]/.test(said) ? `+${said}` : said;
    };
  const points = (value: number) => `${formatFixed(value * 100, 1)}${NBSP}pp`;
  const format = metric.isShare ? points : metric.format;
  const { min, max } = metric.full;
  return {
    ...metric,
    meaning: 'B minus A.',
    full: max === null ? { min: Number.NEGATIVE_INFINITY, max } : { min: min - max, max: max - min },
    diverging: true,
    format: signed(format),
    tick: signed(metric.isShare ? (value) => `${realTick(value * 100)}${NBSP}pp` : metric.tick),
    short: signed(metric.short),
    phrase: (value) => (value === 0 ? 'no difference' : `${signed(format)(value)} against A`),
  };
}

// ---------------------------------------------------------------- whose numbers: the merged result, one of the models, or two

interface SubjectChoice {
  ids: Subject;
  /** As the address has it. */
  key: string;
  label: string;
}

/** The subjects a metric can have. */
export function subjectsOf(metric: Metric, contributors: readonly Contributor[]): SubjectChoice[] {
  if (metric.per === 'tensor') return [{ ids: NOBODY, key: '', label: 'Merged result' }];
  if (metric.per === 'contributor') {
    return contributors.map(({ id, label }) => ({ ids: [id], key: id, label }));
  }
  return contributors.flatMap((a, i) =>
    contributors
      .slice(i + 1)
      .map((b) => ({ ids: [a.id, b.id], key: `${a.id} ${b.id}`, label: `${a.label} × ${b.label}` })),
  );
}

const NOBODY: Subject = [];

/** The chosen subject where a metric has it, else its first; null where it has none. */
export function subjectOf(
  metric: Metric,
  key: string | null,
  contributors: readonly Contributor[],
): Subject | null {
  const all = subjectsOf(metric, contributors);
  return (all.find((subject) => subject.key === key) ?? all[0])?.ids ?? null;
}
