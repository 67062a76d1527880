/** Whose numbers are shown: the merged result, one of the models, or two of them. Pure. */
import type { Metric, Subject } from '../charts/metrics';
import type { Contributor } from '../state/runs';

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
