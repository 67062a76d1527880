import { memo, useCallback, useDeferredValue, useMemo, useState } from 'react';
import type { TensorReport } from '../../reports/job';
import type { PlanTensorFacts } from '../../reports/plan';
import { awaitsMerge, type MetricId, measure, metricById } from '../charts/metrics';
import { formatCount, formatPercent, formatReal } from '../format/quantity';
import { Swatch } from '../parts/Swatch';
import { passesFilter, TableFilter } from '../parts/TableFilter';
import { TensorName } from '../parts/TensorName';
import { type TableColumn, VirtualTable } from '../parts/VirtualTable';
import type { Contributor } from '../state/run-facts';
import { toggleSelected } from '../state/studio';
import { useFacts, useNarrow, useStudio } from '../studio-context';
import type { LayersSource } from './layers-source';

interface Row {
  tensor: PlanTensorFacts;
  report: TensorReport | undefined;
}

/** The numbers behind the charts, one row per tensor, sortable. */
export const LayersTable = memo(function LayersTable({ source }: { source: LayersSource }) {
  const studio = useStudio();
  const selected = useFacts((s) => s.view.selected);
  const [filter, setFilter] = useState('');
  // what is typed is drawn first
  const wanted = useDeferredValue(filter);
  const { all, mostConflict } = useRows(source);
  const rows = useMemo(() => all.filter((r) => passesFilter(wanted, r.tensor.name)), [all, wanted]);
  const columns = useColumns(source.contributors, mostConflict);
  const select = useCallback((name: string) => toggleSelected(studio, name), [studio]);
  return (
    <section className="table-section" aria-label="Tensors of the merge">
      <div className="table-bar">
        <TableFilter
          value={filter}
          shown={rows.length}
          of={source.tensors.length}
          what="tensor"
          onChange={setFilter}
        />
      </div>
      <Numbers
        label="Numbers of every tensor"
        rows={rows}
        rowKey={nameOf}
        columns={columns}
        selected={selected}
        onSelect={select}
        empty={`No tensor’s name contains “${wanted}”.`}
      />
    </section>
  );
});

const Numbers = memo(VirtualTable<Row>);

const nameOf = ({ tensor }: Row) => tensor.name;

function useColumns(contributors: readonly Contributor[], mostConflict: number): TableColumn<Row>[] {
  const narrow = useNarrow();
  const shown = metricById(useFacts((s) => s.view.metric));
  const metric = shown.per === 'contributor' ? shown.id : 'trimmed';
  return useMemo(
    () => [
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
              track: '66px',
              align: 'end' as const,
              cell: (r: Row) => formatCount(r.tensor.elements),
              sortBy: (r: Row) => r.tensor.elements,
            },
            ...contributors.slice(0, 4).map((c) => contributorColumn(c, metric)),
          ]),
      {
        id: 'conflict',
        head: 'Sign conflict',
        track: narrow ? '96px' : '98px',
        align: 'end',
        cell: (r) => <Bar value={value(r, 'signConflict')} of={mostConflict} text={formatPercent} />,
        sortBy: (r) => value(r, 'signConflict') ?? -1,
      },
      {
        id: 'change',
        head: 'Change',
        track: '62px',
        align: 'end',
        cell: (r) => text(value(r, 'outputChange'), formatReal),
        sortBy: (r) => value(r, 'outputChange') ?? -1,
      },
    ],
    [narrow, contributors, metric, mostConflict],
  );
}

/** Every row's report, and the longest bar. */
function useRows({ tensors, reports }: LayersSource): { all: Row[]; mostConflict: number } {
  return useMemo(() => {
    const all = tensors.map((tensor): Row => ({ tensor, report: reports.get(tensor.name) }));
    const conflicts = all.map((row) => value(row, 'signConflict') ?? 0);
    return { all, mostConflict: conflicts.reduce((a, b) => Math.max(a, b), 0) };
  }, [tensors, reports]);
}

function contributorColumn(c: Contributor, metric: MetricId): TableColumn<Row> {
  const id = metric === 'keptEnergy' ? 'keptEnergy' : 'trimmed';
  return {
    id: c.id,
    head: (
      <span className="row head-model" title={`${metricById(id).label} of ${c.label}`}>
        <Swatch colour={c.colour} dot />
        <span className="truncate">{c.label}</span>
      </span>
    ),
    track: 'minmax(56px, 74px)',
    align: 'end',
    cell: (r) => text(value(r, id, c.id), metricById(id).format),
    sortBy: (r) => value(r, id, c.id) ?? -1,
  };
}

function value(row: Row, metric: 'trimmed' | 'keptEnergy' | 'signConflict' | 'outputChange', id?: string) {
  if (!row.report || awaitsMerge(metricById(metric), row.report)) return null;
  return measure(metric, row.report, id === undefined ? [] : [id])?.value ?? null;
}

/** A number, or a dash that is read as what it means. */
function text(value: number | null, format: (value: number) => string) {
  return value === null ? (
    <span className="faint">
      <span aria-hidden="true">–</span>
      <span className="visually-hidden">none</span>
    </span>
  ) : (
    format(value)
  );
}

function Bar({ value, of, text: format }: { value: number | null; of: number; text(value: number): string }) {
  return (
    <span className="cell-bar">
      {value === null ? null : (
        <span className="bar-fill" style={{ width: `${of > 0 ? Math.min(1, value / of) * 32 : 0}px` }} />
      )}
      {text(value, format)}
    </span>
  );
}
