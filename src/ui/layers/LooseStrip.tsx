import type { TensorReport } from '../../reports/job';
import type { PlanTensor } from '../../reports/plan';
import { differenceText } from '../charts/difference';
import { meanMeasured } from '../charts/heatmap-data';
import type { Measured } from '../charts/measured';
import { isAwaited, measure, valueText } from '../charts/metrics';
import { toggleSelected } from '../state/studio';
import { useStudio } from '../studio-context';
import type { LayersView } from './columns';

/** Norms, biases, embedding and head: in numbers, off the color scale of the linear layers. */
export function LooseStrip({ view }: { view: LayersView }) {
  const studio = useStudio();
  const { loose, columns, difference, metric, subject } = view;
  const groups = new Map<string, PlanTensor[]>();
  for (const tensor of loose) {
    const key = tensor.layer === null ? tensor.name : tensor.module;
    groups.set(key, [...(groups.get(key) ?? []), tensor]);
  }
  if (groups.size === 0) return null;
  const meanOf = (reports: ReadonlyMap<string, TensorReport>, tensors: readonly PlanTensor[]) =>
    meanMeasured(
      tensors.flatMap(({ name }): Measured[] => {
        const report = reports.get(name);
        const found = report && !isAwaited(metric, report) ? measure(metric, report, subject) : null;
        return found ? [found] : [];
      }),
    );
  return (
    <div className="scroll-x">
      <table className="plain-table" data-numbers>
        <caption className="visually-hidden">{metric.label} of norms, biases, embedding and head</caption>
        <thead>
          <tr>
            <th scope="col">Norms, embedding, head</th>
            {columns.map(({ letter, run }) => (
              <th key={run.id} scope="col">
                {letter}
              </th>
            ))}
            {difference ? <th scope="col">B − A</th> : null}
          </tr>
        </thead>
        <tbody>
          {[...groups].map(([key, tensors]) => {
            const values = columns.map(({ reports }) => meanOf(reports, tensors));
            const [a, b] = values;
            return (
              <tr key={key}>
                <th scope="row">
                  <button
                    type="button"
                    className="link"
                    onClick={() => toggleSelected(studio, tensors[0]!.name)}
                  >
                    {tensors[0]!.layer === null ? tensors[0]!.name.replace(/\.weight$/, '') : key}
                  </button>
                  {tensors.length > 1 ? <span className="quiet"> × {tensors.length}</span> : null}
                </th>
                {values.map((value, i) => (
                  <td key={columns[i]!.run.id}>{value ? valueText(metric, value) : absentText(tensors)}</td>
                ))}
                {difference ? <td>{a && b ? differenceText(metric, a, b) : '–'}</td> : null}
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}

function absentText(tensors: readonly PlanTensor[]): string {
  return tensors.every((t) => t.copied) ? 'copied' : '–';
}
