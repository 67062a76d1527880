import { differenceText } from '../charts/difference';
import type { Measured } from '../charts/measured';
import { isAwaited, type Metric, measure, metrics, valueText } from '../charts/metrics';
import { LETTERS } from '../layers/columns';
import type { LayersRun } from '../layers/runs';
import { reportsFor } from '../layers/runs';
import { subjectsOf } from '../layers/subject';
import { Section } from '../parts/Section';
import { useStudioState } from '../studio-context';

/** The merged result, models and pairs of models that are listed; of others, the one that is chosen. */
const MOST_GROUPS = 8;

/** Every number of one tensor in the shown runs, and B − A of two. */
export function TensorRuns({ name, runs }: { name: string; runs: readonly LayersRun[] }) {
  const chosen = useStudioState((s) => s.view.subject);
  const { contributors } = runs[0]!;
  const groups = new Map<string, { metric: Metric; values: (Measured | null)[] }[]>();
  for (const metric of metrics) {
    for (const { ids, key, label } of subjectsOf(metric, contributors)) {
      const isFirst = metric.per === 'tensor' || groups.size < MOST_GROUPS || groups.has(label);
      if (!isFirst && key !== chosen) continue;
      const values = runs.map((run) => {
        const report = reportsFor(run, metric).get(name);
        return report && !isAwaited(metric, report) ? measure(metric, report, ids) : null;
      });
      const rows = groups.get(label) ?? [];
      if (values.some((value) => value)) groups.set(label, [...rows, { metric, values }]);
    }
  }
  const isPair = runs.length === 2;
  return (
    <Section title="Shown runs">
      <table className="tensor-runs plain-table" data-numbers>
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
        {[...groups].map(([whose, rows]) => (
          <tbody key={whose}>
            <tr>
              <th scope="rowgroup" colSpan={runs.length + (isPair ? 2 : 1)} className="tensor-runs-of">
                {whose}
              </th>
            </tr>
            {rows.map(({ metric, values }) => {
              const [a, b] = values;
              return (
                <tr key={metric.id}>
                  <th scope="row">{metric.label}</th>
                  {values.map((value, i) => (
                    <td key={runs[i]!.id}>{value ? valueText(metric, value) : '–'}</td>
                  ))}
                  {isPair ? <td>{a && b ? differenceText(metric, a, b) : '–'}</td> : null}
                </tr>
              );
            })}
          </tbody>
        ))}
      </table>
    </Section>
  );
}
