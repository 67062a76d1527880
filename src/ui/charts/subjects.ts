/** Whose values a chart shows. Pure. */
import type { Contributor } from '../state/run-facts';
import type { Metric, Subject } from './metrics';

export interface ChartSubject {
  ids: Subject;
  contributors: readonly Contributor[];
}

/** The charts a metric has: one per contributor, per pair, or one of the merged tensor. */
export function subjectsOf(metric: Metric, contributors: readonly Contributor[]): ChartSubject[] {
  if (metric.per === 'tensor') return [{ ids: [], contributors: [] }];
  if (metric.per === 'contributor') return contributors.map((c) => ({ ids: [c.id], contributors: [c] }));
  return contributors.flatMap((a, i) =>
    contributors.slice(i + 1).map((b) => ({ ids: [a.id, b.id], contributors: [a, b] })),
  );
}

/** Tells charts of one metric apart. */
export function subjectKey({ ids }: ChartSubject): string {
  return ids.join(' ');
}
