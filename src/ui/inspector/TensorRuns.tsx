import { differenceMetric } from '../charts/difference';
import { awaitsMerge, measure, metrics, valueText } from '../charts/metrics';
import { LETTERS } from '../layers/columns';
import type { LayersRun } from '../layers/runs';
import { reportsFor } from '../layers/runs';
import { subjectOf } from '../layers/subject';
import { Section } from '../parts/Section';
import { useFacts } from '../studio-context';

/** Every number of one tensor in the shown runs, and B − A of two. */
export function TensorRuns({ name, runs }: { name: string; runs: readonly LayersRun[] }) {
  const chosen = useFacts((s) => s.view.subject);
  const { contributors } = runs[0]!;
  const labels = new Map(contributors.map((c) => [c.id, c.label]));
  const rows = metrics.flatMap((metric) => {
    const subject = subjectOf(metric, chosen, contributors);
    if (!subject) return [];
    const values = runs.map((run) => {
      const report = reportsFor(run, metric).get(name);
      return report && !awaitsMerge(metric, report) ? measure(metric.id, report, subject) : null;
    });
    const whose = subject.map((id) => labels.get(id) ?? id).join(' × ');
    return values.some((value) => value) ? [{ metric, values, whose }] : [];
  });
  const isPair = runs.length === 2;
  return (
    <Section title="Shown runs">
      <table className="tensor-runs small">
        <thead>
          <tr>
            <th scope="col">
              <span className="visually-hidden">Number</span>
            </th>
            {runs.map((run, i) => (
              <th key={run.id} scope="col" title={run.name}>
                <span className="run-letter" data-place={i}>
                  {LETTERS[i]}
                </span>
              </th>
            ))}
            {isPair ? <th scope="col">B − A</th> : null}
          </tr>
        </thead>
        <tbody>
          {rows.map(({ metric, values, whose }) => {
            const [a, b] = values;
            return (
              <tr key={metric.id}>
                <th scope="row">
                  {metric.label}
                  {whose === '' ? null : <span className="quiet"> {whose}</span>}
                </th>
                {values.map((value, i) => (
                  <td key={runs[i]!.id}>{value ? valueText(metric, value) : '–'}</td>
                ))}
                {isPair ? <td>{a && b ? differenceMetric(metric).format(b.value - a.value) : '–'}</td> : null}
              </tr>
            );
          })}
        </tbody>
      </table>
    </Section>
  );
}
