import { memo, useMemo, useState } from 'react';
import { formatCount } from '../../formats/quantity';
import { Segmented } from '../../ui/parts/Segmented';
import { TensorName } from '../../ui/parts/TensorName';
import { type TableColumn, VirtualTable } from '../../ui/parts/VirtualTable';
import { toggleSelected } from '../../ui/state/studio';
import type { ToolJob } from '../../ui/state/tool-state';
import { useNarrow, useStudio, useStudioState } from '../../ui/studio-context';
import { differenceMetric } from './Metrics';
import type { TensorDifference } from './report';

/** The numbers behind the chart: the most changed tensors first, or all; sortable. */
export const DifferenceTable = memo(function DifferenceTable({ found }: { found: ToolJob<'compare'> }) {
  const studio = useStudio();
  const narrow = useNarrow();
  const selected = useStudioState((s) => s.view.selected);
  const top = useStudioState((s) => s.tools.values.difference.top);
  const [all, setAll] = useState(false);
  const tensors = found.report?.tensors ?? found.finished;
  const rows = useMemo(() => ranked(tensors, all ? null : top), [tensors, all, top]);
  return (
    <section className="stack difference-table" aria-label="Most changed tensors">
      <div className="table-bar">
        <Segmented
          label="Rows"
          value={all ? 'all' : 'top'}
          options={[
            { value: 'top', label: `Top ${formatCount(top)}` },
            { value: 'all', label: `All ${formatCount(tensors.length)}` },
          ]}
          onChange={(next) => setAll(next === 'all')}
        />
        <span className="small quiet">by relative difference; a row opens the tensor</span>
      </div>
      <div className="tool-table">
        <VirtualTable
          label="Differences of every tensor"
          rows={rows}
          rowKey={(t) => t.name}
          columns={narrow ? columns.filter((c) => NARROW.has(c.id)) : columns}
          selected={selected}
          onSelect={(name) => toggleSelected(studio, name)}
          empty={
            found.status === 'running' ? 'The first tensors are being measured.' : 'No tensor was compared.'
          }
        />
      </div>
    </section>
  );
});

/** Columns there is room for on a phone. */
const NARROW = new Set(['name', 'relative', 'changedRatio']);

const number = (
  id: 'relative' | 'meanAbs' | 'maxAbs' | 'changedRatio' | 'cosine' | 'signFlipRatio',
  head: string,
  track: string,
): TableColumn<TensorDifference> => ({
  id,
  head,
  track,
  align: 'end',
  cell: (t) => differenceMetric(id).format(t[id]),
  sortBy: (t) => t[id],
});

const columns: TableColumn<TensorDifference>[] = [
  {
    id: 'name',
    head: 'Tensor',
    track: 'minmax(120px, 1fr)',
    cell: (t) => <TensorName name={t.name} />,
    sortBy: (t) => t.name,
  },
  number('relative', 'Relative', '68px'),
  number('meanAbs', 'Mean |Δ|', '76px'),
  number('maxAbs', 'Max |Δ|', '76px'),
  number('changedRatio', 'Changed', '66px'),
  number('cosine', 'Cosine', '62px'),
  {
    id: 'rank',
    head: 'Rank 95',
    track: '62px',
    align: 'end',
    cell: rankText,
    sortBy: (t) => t.lora?.rank95 ?? -1,
  },
];

/** Directions that hold 95 % of the change; a bound says so. */
function rankText({ lora, stableRank }: TensorDifference) {
  if (lora) return `${lora.rank95IsBound ? '≥ ' : ''}${formatCount(lora.rank95)}`;
  return (
    <span className="faint">
      <span aria-hidden="true">–</span>
      <span className="visually-hidden">{stableRank === null ? 'no matrix' : 'not decomposed'}</span>
    </span>
  );
}

function ranked(tensors: readonly TensorDifference[], most: number | null): TensorDifference[] {
  const sorted = [...tensors].sort((a, b) => b.relative - a.relative);
  return most === null ? sorted : sorted.slice(0, most);
}
