/** Which number the Layers tab opens on, which numbers a method does not have, and why a picture is of one colour. Pure. */
import type { DeltaPreset, MergeMethod, ResolvedParameters } from '../../merge/method';
import { type Measured, type Metric, type MetricId, metricById, metrics } from './metrics';

/** What of a recipe decides which numbers there are. */
export interface RecipeTraits {
  method: MergeMethod;
  /** Of the method as a whole, resolved. */
  parameters: ResolvedParameters;
  contributors: number;
  hasBase: boolean;
}

/** Why a metric does not exist for a recipe, or null. */
export function absenceOf(
  metric: Metric,
  { method, parameters, contributors, hasBase }: RecipeTraits,
): string | null {
  const { compute, title } = method;
  const preset = compute.kind === 'delta' ? compute.preset(parameters) : undefined;
  const countsKept = compute.kind === 'elementwise' && compute.counters !== undefined;
  if (metric.per === 'pair' && contributors < 2) {
    return `${metric.label} compares two models; this recipe has only one.`;
  }
  if (!hasBase && metric.id !== 'cosine') return `Without a base there are no changes to look at.`;
  switch (metric.id) {
    case 'trimmed':
      return (preset && preset.select !== 'all') || countsKept || compute.kind === 'solved'
        ? null
        : `${title} trims nothing: every change is kept.`;
    case 'keptEnergy':
    case 'effectiveNorm':
      if (countsKept) return `${title} counts the changes that it keeps, and does not measure their size.`;
      return (preset && preset.select !== 'all') || (compute.kind === 'solved' && metric.id === 'keptEnergy')
        ? null
        : compute.kind === 'solved'
          ? `${title} solves for all models together: what enters of one alone is not measured.`
          : `${title} trims nothing: every change is kept.`;
    case 'overlap':
    case 'runOverlap':
      if (countsKept) return `${title} counts the changes that it keeps, and leaves no mask to compare.`;
      return preset && preset.select !== 'all'
        ? null
        : `${title} trims nothing, so there are no masks to compare.`;
    case 'threshold':
      if (countsKept) return `${title} counts the changes that it keeps, and does not look for the smallest.`;
      return preset && (preset.select === 'top-k' || preset.select === 'band' || preset.select === 'prepared')
        ? null
        : `${title} has no threshold on the size of a change.`;
    case 'lostInVote':
      return preset && preset.consensus !== 'none' && contributors > 1
        ? null
        : contributors > 1
          ? `${title} elects no sign, so no change is lost in a vote.`
          : 'One model alone wins every vote.';
    case 'signConflict':
      if (contributors < 2) return 'One model alone has no conflicts.';
      return preset ? null : `${title} does not look at signs.`;
    default:
      return null;
  }
}

/** In the order in which they are offered: what tells most of most merges first. */
const BY_INTEREST: readonly MetricId[] = [
  'mergedSparsity',
  'outputChange',
  'overlap',
  'lostInVote',
  'keptEnergy',
  'size',
  'cosine',
];

/** Shares that differ by less than this, and sizes by less than this part of themselves, look the same. */
const FLAT = { share: 0.002, size: 0.01 };

/** Whether values differ so little that their picture is of one colour. */
export function isFlat({ isShare, id }: Metric, values: readonly number[]): boolean {
  if (values.length < 2) return true;
  const sorted = [...values].sort((a, b) => a - b);
  const at = (p: number) => sorted[Math.round(p * (sorted.length - 1))]!;
  const range = at(0.98) - at(0.02);
  return range <= (isShare || id === 'cosine' ? FLAT.share : FLAT.size * Math.abs(at(0.5)));
}

/** Why the values of a metric are all the same, where that follows from the method. */
export function constantReason(metric: Metric, traits: RecipeTraits): string {
  const { method, parameters } = traits;
  const preset = method.compute.kind === 'delta' ? method.compute.preset(parameters) : undefined;
  const why = preset && reasonOf(metric.id, preset, method.title);
  return why ?? 'Every tensor has the same value, so there is nothing to compare.';
}

function reasonOf(metric: MetricId, preset: DeltaPreset, title: string): string | undefined {
  const { select, scope } = preset;
  const random = select === 'random' || select === 'rank';
  if (metric === 'trimmed' && scope !== 'model') {
    if (select === 'variance' || select === 'fusion') return undefined;
    return `The same everywhere by construction: ${title} keeps the share “density” of ${random ? 'every tensor, drawn at random' : 'each tensor'}.`;
  }
  if (random && (metric === 'keptEnergy' || metric === 'effectiveNorm')) {
    return `The same everywhere by construction: ${title} draws at random, so every tensor keeps the share “density” of its energy.`;
  }
  if (metric === 'overlap' && random) {
    return `The same everywhere by construction: ${title} draws every mask on its own, so overlaps are what chance gives.`;
  }
  if (metric === 'mergedSparsity' && random) {
    return `Nearly the same everywhere by construction: ${title} draws at random with one density.`;
  }
  return undefined;
}

/** What is known of a metric: its values over the linear layers, with their errors. */
type MeasuredOf = (metric: Metric) => readonly Pick<Measured, 'value' | 'error'>[];

/** Whether the errors of predicted values are about as large as what tells them apart. */
export function isHidden(measured: ReturnType<MeasuredOf>): boolean {
  const middle = (of: readonly number[], p: number) => of[Math.round(p * (of.length - 1))] ?? 0;
  const values = measured.map((m) => m.value).sort((a, b) => a - b);
  const error = middle(
    measured.map((m) => m.error).sort((a, b) => a - b),
    0.5,
  );
  return error > 0 && middle(values, 0.98) - middle(values, 0.02) < 4 * error;
}

/**
 * The metric to open on: the first by interest that the recipe has, that has values, and whose errors do not hide them; if
 * there is none, the first with values.
 * @param compares runs are compared: what is the same in every one, a number of the models, is no metric to open on
 */
export function defaultMetric(traits: RecipeTraits, measuredOf: MeasuredOf, compares = false): MetricId {
  const there = metricsOf(traits, compares);
  const known = there.filter((m) => measuredOf(m).length > 0);
  return (known.find((m) => !isHidden(measuredOf(m))) ?? known[0] ?? there[0] ?? metrics[0]!).id;
}

/** What a recipe has, by interest; where runs are compared, only what merging decides. */
function metricsOf(traits: RecipeTraits, compares: boolean): Metric[] {
  return BY_INTEREST.map(metricById).filter(
    (metric) => absenceOf(metric, traits) === null && (metric.ofMerge || !compares),
  );
}

/** The next metric worth a look where one is of one colour or has no values yet; null where there is none. */
export function nextMetric(
  after: MetricId,
  traits: RecipeTraits,
  measuredOf: MeasuredOf,
  compares = false,
): MetricId | null {
  const next = metricsOf(traits, compares).find((metric) => {
    if (metric.id === after) return false;
    const measured = measuredOf(metric);
    const values = measured.map((m) => m.value);
    return !isHidden(measured) && !isFlat(metric, values);
  });
  return next?.id ?? null;
}
