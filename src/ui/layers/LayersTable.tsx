import { memo, useCallback, useMemo } from 'react';
import { formatCount } from '../../formats/quantity';
import type { PlanTensor } from '../../reports/plan';
import { type GridTensor, meanMeasured } from '../charts/heatmap-data';
import { differenceIn, type Measured } from '../charts/measured';
import { valueText } from '../charts/shown-metric';
import { LinkButton } from '../parts/Button';
import { nameColumn, numberColumn, passesFilter, type TableColumn, TensorTable } from '../parts/VirtualTable';
import { setView, toggleSelected } from '../state/studio';
import { useNarrow, useSlice, useStudio, useStudioState } from '../studio-context';
import { type CanvasView, type LayersView, statisticsOf } from './columns';

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
    const by = (of: (row: Row) => number | null) =>
      exact ? { sortBy: (row: Row) => of(row) ?? -Infinity } : {};
    return [
      nameColumn('Tensor', nameOf),
      ...(narrow
        ? []
        : [numberColumn<Row>('elements', 'Elements', '74px', (r) => r.tensor.elements, formatCount)]),
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
                return a && b ? valueText(difference.metric, differenceIn(a, b)) : <None copied={false} />;
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

/** Norms, biases, embedding and head: in numbers, off the color scale of the linear layers. */
export function LooseStrip({ view }: { view: CanvasView }) {
  const studio = useStudio();
  const { loose, columns, difference, metric } = view;
  const groups = new Map<string, GridTensor[]>();
  for (const tensor of loose) {
    const key = tensor.layer === null ? tensor.name : tensor.module;
    groups.set(key, [...(groups.get(key) ?? []), tensor]);
  }
  if (groups.size === 0) return null;
  return (
    <div className="scroll-x">
      <table className="plain-table" data-numbers>
        <caption className="visually-hidden">{metric.label} of norms, biases, embedding and head</caption>
        <thead>
          <tr>
            <th scope="col">Norms, embedding, head</th>
            {columns.map(({ id, letter }) => (
              <th key={id} scope="col">
                {letter}
              </th>
            ))}
            {difference ? <th scope="col">B − A</th> : null}
          </tr>
        </thead>
        <tbody>
          {[...groups].map(([key, tensors]) => {
            const values = columns.map(({ measuredOf }) =>
              meanMeasured(tensors.flatMap(({ name }) => measuredOf(name) ?? [])),
            );
            const [a, b] = values;
            return (
              <tr key={key}>
                <th scope="row">
                  <LinkButton onClick={() => toggleSelected(studio, tensors[0]!.name)}>
                    {tensors[0]!.layer === null ? tensors[0]!.name.replace(/\.weight$/, '') : key}
                  </LinkButton>
                  {tensors.length > 1 ? <span className="quiet"> × {tensors.length}</span> : null}
                </th>
                {values.map((value, i) => (
                  <td key={columns[i]!.id}>{value ? valueText(metric, value) : absentText(tensors)}</td>
                ))}
                {difference ? (
                  <td>{a && b ? valueText(difference.metric, differenceIn(a, b)) : '–'}</td>
                ) : null}
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}

function absentText(tensors: readonly GridTensor[]): string {
  return tensors.every((t) => t.copied) ? 'copied' : '–';
}

/** Mean, spread and ends of A, B and their difference over a range of layers; the range is typed or dragged in the plot. */
export function RangeLine({ view }: { view: CanvasView }) {
  const studio = useStudio();
  const layers = useStudioState((s) => s.view.layers);
  const { columns, difference, grid, metric } = view;
  const [first, last] = [grid.layers[0]?.layer ?? 0, grid.layers.at(-1)?.layer ?? 0];
  const [from, to] = layers ?? [first, last];
  const set = (next: [number, number]) =>
    setView(studio, { layers: next[0] === first && next[1] === last ? null : next });
  const rows = [
    ...columns.map(({ letter, data }) => ({ label: letter, metric, data })),
    ...(difference ? [{ label: 'B − A', ...difference }] : []),
  ];
  return (
    <div className="row wrap apart range-line small">
      <span className="row tight">
        Statistics of layers
        <input
          className="field"
          type="number"
          aria-label="First layer of the range"
          min={first}
          max={to}
          value={from}
          onChange={(event) => set([Math.max(first, Math.min(to, Number(event.target.value))), to])}
        />
        to
        <input
          className="field"
          type="number"
          aria-label="Last layer of the range"
          min={from}
          max={last}
          value={to}
          onChange={(event) => set([from, Math.min(last, Math.max(from, Number(event.target.value)))])}
        />
        {layers ? <LinkButton onClick={() => setView(studio, { layers: null })}>all</LinkButton> : null}
      </span>
      {rows.map(({ label, metric: own, data }) => {
        const of = statisticsOf(data, layers);
        return of ? (
          <span key={label}>
            <strong>{label}</strong> mean {valueText(own, of.mean)}, sd{' '}
            {own.format(of.deviation).replace('+', '')}, {own.format(of.least)} to {own.format(of.most)}
          </span>
        ) : null;
      })}
    </div>
  );
}
