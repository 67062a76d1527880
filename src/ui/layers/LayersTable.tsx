import { memo, useCallback, useMemo } from 'react';
import { formatShape } from '../../formats/quantity';
import type { PlanTensor } from '../../reports/plan';
import { differenceIn, type Measured, roughText, valueText } from '../charts/measured';
import { Swatch } from '../parts/Section';
import { nameColumn, passesFilter, type TableColumn, TensorTable } from '../parts/VirtualTable';
import type { Contributor } from '../state/runs';
import { setView, toggleSelected } from '../state/studio';
import { useNarrow, useSlice, useStudio } from '../studio-context';
import type { LayersView } from './columns';

interface Row {
  tensor: PlanTensor;
  values: readonly (Measured | null)[];
}

/** The numbers of every tensor, a column a run and one for B − A; sorted only by what was counted. */
export const LayersTable = memo(function LayersTable({ view }: { view: LayersView }) {
  const studio = useStudio();
  const narrow = useNarrow();
  const { selected, filter } = useSlice('view', 'selected', 'filter');
  const { columns, metric, difference } = view;
  const tensors = columns[0]!.run.tensors;
  const rows = useMemo(
    () =>
      tensors
        .filter((t) => passesFilter(filter, t.name))
        .map((tensor): Row => ({ tensor, values: columns.map(({ measuredOf }) => measuredOf(tensor.name)) })),
    [tensors, filter, columns],
  );
  const exact = rows.every(({ values }) => values.every((v) => !v || v.error === 0));
  const shown = useMemo((): TableColumn<Row>[] => {
    // the panel of a tensor has the errors
    const track = narrow ? 'minmax(72px, 84px)' : 'minmax(96px, 168px)';
    const textOf = narrow ? roughText : valueText;
    const by = (of: (row: Row) => number | null) =>
      exact ? { sortBy: (row: Row) => of(row) ?? -Infinity } : {};
    return [
      nameColumn('Tensor', nameOf),
      // Beside several runs the numbers have the room; the panel of a tensor has both.
      ...(narrow || columns.length > 1 ? [] : [shapeColumn, changedBy(columns[0]!.run.contributors)]),
      ...columns.map(({ letter, run }, i) => ({
        id: run.id,
        head: (
          <span title={`${metric.label}, ${run.name}`}>{columns.length > 1 ? letter : metric.label}</span>
        ),
        track,
        align: 'end' as const,
        cell: (r: Row) => {
          const value = r.values[i];
          return value ? textOf(metric, value) : <None of={r.tensor} />;
        },
        ...by((r) => r.values[i]?.value ?? null),
      })),
      ...(difference
        ? [
            {
              id: 'difference',
              head: 'B − A',
              track,
              align: 'end' as const,
              cell: (r: Row) => {
                const [a, b] = r.values;
                return a && b ? textOf(difference.metric, differenceIn(a, b)) : <None />;
              },
              ...by(deltaOf),
            },
          ]
        : []),
    ];
  }, [narrow, columns, metric, difference, exact]);
  const select = useCallback((name: string) => toggleSelected(studio, name), [studio]);
  return (
    <TensorTable
      title="Tensors of the merge"
      label="Numbers of every tensor"
      of={tensors.length}
      what="tensor"
      filter={filter}
      onFilter={(next) => setView(studio, { filter: next })}
      rows={rows}
      rowKey={nameOf}
      columns={shown}
      selected={selected}
      onSelect={select}
    />
  );
});

const shapeColumn: TableColumn<Row> = {
  id: 'shape',
  head: 'Shape',
  track: '150px',
  align: 'end',
  cell: ({ tensor: { shape, dtype } }) => `${formatShape(shape)} ${dtype}`,
};

const changedBy = (contributors: readonly Contributor[]): TableColumn<Row> => ({
  id: 'contributors',
  head: 'Changed by',
  track: '84px',
  cell: ({ tensor }) => (
    <span className="row tight">
      {tensor.contributors.map((index) => {
        const c = contributors[index];
        return c ? <Swatch key={c.id} dot color={c.color} label={c.label} /> : null;
      })}
    </span>
  ),
  sortBy: ({ tensor }) => tensor.contributors.length,
});

const nameOf = ({ tensor }: Row) => tensor.name;

function deltaOf({ values: [a, b] }: Row): number | null {
  return a && b ? b.value - a.value : null;
}

function None({ of }: { of?: PlanTensor }) {
  const words = of?.leftOut ? 'left out' : of?.copied ? 'copied' : '–';
  return <span className="faint">{words}</span>;
}
