/** Overlap of masks (IoU), of two models in a run or of a model in two runs, and what chance gives. Pure. */
import { sampledError } from '../../merge/prediction/predicted-report';
import type { TensorReport } from '../../reports/job';
import type { MaskOverlap } from '../../reports/overlap';

/** A tensor of two runs: nothing is known of it but how far the masks of one model agree. */
export interface RunsReport extends TensorReport {
  runs: { model: string; overlap: MaskOverlap };
}

/** The changes that two contributors both keep, of those that either keeps, over the union of their masks. */
export function overlapOfModels(report: TensorReport, subject: readonly string[]) {
  const found = countsOfModels(report, subject);
  const measured = found && overlapOf(found);
  return measured && { ...measured, error: sampledError(report, measured.value, measured.weight) };
}

/** The changes of one contributor that two runs both keep, of those that either keeps. */
export function overlapOfRuns(report: TensorReport | RunsReport, [model]: readonly string[]) {
  return 'runs' in report && report.runs.model === model ? overlapOf(report.runs.overlap) : null;
}

/** What the overlap of two random masks of the same densities would be: pq / (p + q − pq). */
export function chanceOverlap(report: TensorReport | RunsReport, subject: readonly string[]): number | null {
  const counts = 'runs' in report ? report.runs.overlap : countsOfModels(report, subject);
  const [p, q] = (counts?.kept ?? [0, 0]).map((kept) => kept / report.elements) as [number, number];
  return p + q > 0 ? (p * q) / (p + q - p * q) : null;
}

type Counts = Pick<MaskOverlap, 'kept' | 'both'>;

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
