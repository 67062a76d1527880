import { memo, useCallback, useMemo } from 'react';
import { formatCount } from '../../formats/quantity';
import type { PlanTensor } from '../../reports/plan';
import { differenceText } from '../charts/difference';
import type { Measured } from '../charts/measured';
import { isAwaited, measure, valueText } from '../charts/metrics';
import { noTensorWords, passesFilter, TableFilter } from '../parts/TableFilter';
import { TensorName } from '../parts/TensorName';
import { type TableColumn, VirtualTable } from '../parts/VirtualTable';
import { setView, toggleSelected } from '../state/studio';
import { useNarrow, useStudio, useStudioState } from '../studio-context';
import type { LayersView } from './columns';

interface Row {
  tensor: PlanTensor;
  values: readonly (Measured | null)[];
}

/** The numbers of every tensor, a column a run and one for B − A; sorted only by what was counted. */
export const LayersTable = memo(function LayersTable({ view }: { view: LayersView }) {
  const studio = useStudio();
  const narrow = useNarrow();
  const selected = useStudioState((s) => s.view.selected);
  const filter = useStudioState((s) => s.view.filter);
  const { columns, metric, subject, difference } = view;
  const tensors = columns[0]!.run.tensors;
  const rows = useMemo(
    () =>
      tensors
        .filter((t) => passesFilter(filter, t.name))
        .map((tensor): Row => {
          const values = columns.map(({ reports }) => {
            const report = reports.get(tensor.name);
            return report && !isAwaited(metric, report) ? measure(metric, report, subject) : null;
          });
          return { tensor, values };
        }),
    [tensors, filter, columns, metric, subject],
  );
  const exact = rows.every(({ values }) => values.every((v) => !v || v.error === 0));
  const shown = useMemo((): TableColumn<Row>[] => {
    const by = (of: (row: Row) => number | null) =>
      exact ? { sortBy: (row: Row) => of(row) ?? -Infinity } : {};
    return [
      {
        id: 'name',
        head: 'Tensor',
        track: 'minmax(120px, 1fr)',
        cell: (r) => <TensorName name={r.tensor.name} />,
      },
      ...(narrow
        ? []
        : [
            {
              id: 'elements',
              head: 'Elements',
              track: '74px',
              align: 'end' as const,
              cell: (r: Row) => formatCount(r.tensor.elements),
              sortBy: (r: Row) => r.tensor.elements,
            },
          ]),
      ...columns.map(({ letter, run }, i) => ({
        id: run.id,
        head: (
          <span title={`${metric.label}, ${run.name}`}>{columns.length > 1 ? letter : metric.label}</span>
        ),
        track: narrow ? 'minmax(64px, 110px)' : 'minmax(96px, 150px)',
        align: 'end' as const,
        cell: (r: Row) => {
          const value = r.values[i];
          return value ? valueText(metric, value) : <None copied={r.tensor.copied} />;
        },
        ...by((r) => r.values[i]?.value ?? null),
      })),
      ...(difference
        ? [
            {
              id: 'difference',
              head: 'B − A',
              track: 'minmax(64px, 150px)',
              align: 'end' as const,
              cell: (r: Row) => {
                const [a, b] = r.values;
                return a && b ? differenceText(metric, a, b) : <None copied={false} />;
              },
              ...by(deltaOf),
            },
          ]
        : []),
    ];
  }, [narrow, columns, metric, difference, exact]);
  const select = useCallback((name: string) => toggleSelected(studio, name), [studio]);
  return (
    <section className="table-section" aria-label="Tensors of the merge">
      <div className="row wrap apart">
        <TableFilter
          value={filter}
          shown={rows.length}
          of={tensors.length}
          what="tensor"
          onChange={(next) => setView(studio, { filter: next })}
        />
      </div>
      <Numbers
        label="Numbers of every tensor"
        rows={rows}
        rowKey={nameOf}
        columns={shown}
        selected={selected}
        onSelect={select}
        empty={noTensorWords(filter, 'There are no tensors.')}
      />
    </section>
  );
});

const Numbers = memo(VirtualTable<Row>);

const nameOf = ({ tensor }: Row) => tensor.name;

function deltaOf({ values: [a, b] }: Row): number | null {
  return a && b ? b.value - a.value : null;
}

function None({ copied }: { copied: boolean }) {
  return (
    <span className="faint">
      <span aria-hidden="true">{copied ? 'copied' : '–'}</span>
      <span className="visually-hidden">{copied ? 'copied unchanged' : 'none'}</span>
    </span>
  );
}
