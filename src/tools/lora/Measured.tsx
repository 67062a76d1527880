import { memo } from 'react';
import { formatCount, formatCounted, formatPercent, formatReal } from '../../formats/quantity';
import {
  curveWords,
  keptByRank,
  type MeasuredModule,
  moduleRank,
  rankKeeping,
  SHARES,
  shareWords,
} from '../../reports/lora';
import { BarStrip } from '../../ui/charts/LinePlot';
import { Button } from '../../ui/parts/Button';
import { ToolEnd } from '../../ui/parts/Message';
import { Costs, Section, Sentences } from '../../ui/parts/Section';
import { ToolHead } from '../../ui/parts/ToolBar';
import { nameColumn, numberColumn, type TableColumn, VirtualTable } from '../../ui/parts/VirtualTable';
import type { ToolJob } from '../../ui/state/job-state';
import { choiceName } from '../../ui/state/roles';
import { toggleSelected } from '../../ui/state/studio';
import { useStudio, useStudioState } from '../../ui/studio-context';

/** What the last measurement found: the curve of what each rank keeps, and every module. @param onRank chooses one */
export function Measured({ job, onRank }: { job: ToolJob<'measureLora'>; onRank(rank: number): void }) {
  const { request, report } = job;
  const title =
    'lora' in request
      ? choiceName(request.lora)
      : `${choiceName(request.base)} → ${choiceName(request.finetuned)}`;
  return (
    <>
      <ToolHead title={title} report={report} />
      <ToolEnd run={job} stopped="Stopped. Nothing was measured." nothing="NothingToExtract" />
      {report ? (
        <>
          {report.facts.length > 0 ? (
            <Costs items={report.facts.map(({ label, value }) => [label, value, ''])} />
          ) : null}
          <Curve modules={report.modules} onRank={onRank} />
          <Sentences words={report.notes} />
          <Modules modules={report.modules} />
        </>
      ) : null}
    </>
  );
}

/** Share of the change that one rank for all modules keeps. */
function Curve({ modules, onRank }: { modules: readonly MeasuredModule[]; onRank(rank: number): void }) {
  const kept = keptByRank(modules);
  const found = SHARES.map((share) => ({ share, rank: rankKeeping(kept, share) }));
  const mark = found.find(({ share }) => share === 0.95)?.rank ?? kept.length;
  const [words, ...poor] = curveWords(modules);
  const most = formatPercent(kept.at(-1) ?? 1);
  return (
    <Section title="What a rank keeps">
      <BarStrip
        heights={kept}
        solid={(i) => Number(i < mark)}
        cut={mark < kept.length ? mark : undefined}
        label={`Share of the change that each rank keeps, of ${formatCounted(kept.length, 'rank')}: ${words}`}
        axis={[`rank 1: ${formatPercent(kept[0] ?? 1)}`, `rank ${kept.length}: ${most}`]}
      />
      <Sentences words={poor} bad />
      <div className="row wrap">
        {found.map(({ share, rank }) => (
          <Button
            key={share}
            why={rank === undefined ? `Rank ${kept.length}, the largest looked at, keeps ${most}.` : null}
            onClick={() => rank !== undefined && onRank(rank)}
          >
            {shareWords(share)}: {rank === undefined ? `above rank ${kept.length}` : `rank ${rank}`}
          </Button>
        ))}
      </div>
    </Section>
  );
}

const rankOf = (share: number) => (m: MeasuredModule) => moduleRank(m, share) ?? Number.POSITIVE_INFINITY;

const columns: TableColumn<MeasuredModule>[] = [
  nameColumn('Module', (m) => m.module),
  numberColumn('norm', '‖Δ‖', '62px', (m) => Math.sqrt(m.squares), formatReal),
  ...SHARES.map((share) =>
    numberColumn<MeasuredModule>(String(share), shareWords(share), '44px', rankOf(share), (rank) =>
      Number.isFinite(rank) ? formatCount(rank) : 'more',
    ),
  ),
];

const withRank: TableColumn<MeasuredModule>[] = [
  columns[0]!,
  numberColumn('rank', 'Rank', '44px', (m) => m.rank ?? 0, formatCount),
  ...columns.slice(1),
];

const Modules = memo(function Modules({ modules }: { modules: readonly MeasuredModule[] }) {
  const studio = useStudio();
  const selected = useStudioState((s) => s.view.selected);
  return (
    <section className="tool-table" aria-label="Modules by the rank that keeps most of them">
      <VirtualTable
        label="Modules by the rank that keeps most of them"
        rows={modules}
        rowKey={(m) => m.module}
        columns={modules.some(({ rank }) => rank !== null) ? withRank : columns}
        selected={selected}
        onSelect={(name) => toggleSelected(studio, name)}
        empty="Nothing that has factors changes."
      />
    </section>
  );
});
