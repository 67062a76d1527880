import '../../ui/styles/tools.css';
import { memo, useMemo, useRef } from 'react';
import { formatCount, formatCounted } from '../../formats/quantity';
import { copyOf } from '../../formats/recipe';
import { optionsProblem } from '../../reports/option';
import type { PlanTensor } from '../../reports/plan';
import { type CellOf, type Heatmap, heatmapOf } from '../../ui/charts/heatmap-data';
import { arrange, useScale } from '../../ui/layers/columns';
import { LayersCanvas } from '../../ui/layers/LayersCanvas';
import { Button } from '../../ui/parts/Button';
import { Segmented } from '../../ui/parts/fields';
import { Problem, ToolEnd } from '../../ui/parts/Message';
import { OpenModels, PairPicker, usePair } from '../../ui/parts/ModelSelect';
import { ToolForm } from '../../ui/parts/OptionsForm';
import { SavedFiles, SaveTo } from '../../ui/parts/SavedFiles';
import { Section } from '../../ui/parts/Section';
import { ToolBar, ToolHead } from '../../ui/parts/ToolBar';
import { nameColumn, numberColumn, type TableColumn, VirtualTable } from '../../ui/parts/VirtualTable';
import { whyNoTool } from '../../ui/state/job';
import type { ToolJob } from '../../ui/state/job-state';
import { choiceName, fileNameOf, pairProblem } from '../../ui/state/roles';
import { toggleSelected } from '../../ui/state/studio';
import { beginTool, editTool, whyNotSaved } from '../../ui/state/tool-jobs';
import { useAnswer, useNarrow, useStudio, useStudioState } from '../../ui/studio-context';
import { Findings } from './Findings';
import { type DifferenceMetricId, differenceMetric, differenceMetrics } from './Metrics';
import { compareOptions } from './options';
import type { TensorDifference } from './report';

/** The numbers behind the chart, the most changed tensors first; sortable. */
const DifferenceTable = memo(function DifferenceTable({ found }: { found: ToolJob<'compare'> }) {
  const studio = useStudio();
  const narrow = useNarrow();
  const selected = useStudioState((s) => s.view.selected);
  const tensors = found.report?.tensors ?? found.finished;
  const rows = useMemo(() => [...tensors].sort((a, b) => b.relative - a.relative), [tensors]);
  return (
    <section className="tool-table" aria-label="Differences">
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
    </section>
  );
});

/** Columns there is room for on a phone. */
const NARROW = new Set(['name', 'relative', 'changedRatio']);

const column = (id: DifferenceMetricId, head: string, track: string) =>
  numberColumn<TensorDifference>(id, head, track, (t) => t[id], differenceMetric(id).format);

const columns: TableColumn<TensorDifference>[] = [
  nameColumn('Tensor', (t) => t.name),
  column('relative', 'Relative', '68px'),
  column('meanAbs', 'Mean |Δ|', '76px'),
  column('maxAbs', 'Max |Δ|', '76px'),
  column('changedRatio', 'Changed', '66px'),
  column('cosine', 'Cosine', '62px'),
  {
    ...numberColumn<TensorDifference>('rank', 'Rank 95', '62px', (t) => t.lora?.rank95 ?? null, formatCount),
    cell: rankText,
  },
];

/** Directions that hold 95 % of the change; a bound is marked as one. */
function rankText({ lora, shape }: TensorDifference) {
  if (lora) return `${lora.rank95IsBound ? '≥ ' : ''}${formatCount(lora.rank95)}`;
  return (
    <span className="faint">
      <span aria-hidden="true">–</span>
      <span className="visually-hidden">{shape.length === 2 ? 'not decomposed' : 'no matrix'}</span>
    </span>
  );
}

/** The layer × module chart of a comparison, filling in as tensors finish. */
const DifferenceChart = memo(function DifferenceChart({ found }: { found: ToolJob<'compare'> }) {
  const studio = useStudio();
  const view = useDifferenceView(found);
  const { metric } = view;
  return (
    <section className="stack difference-chart" aria-label="Where the weights moved">
      <div className="row wrap apart layers-bar">
        <div className="scroll-x">
          <Segmented<DifferenceMetricId>
            label="Metric"
            value={metric.id}
            options={differenceMetrics.map((m) => ({ value: m.id, label: m.label }))}
            onChange={(next) => editTool(studio, 'difference', { metric: next })}
          />
        </div>
        <p className="small quiet">{metric.meaning}</p>
      </div>
      <LayersCanvas view={view} />
    </section>
  );
});

function useDifferenceView({ request, report, finished, status }: ToolJob<'compare'>) {
  const metric = differenceMetric(useStudioState((s) => s.tools.values.difference.metric));
  const expanded = useStudioState((s) => s.view.expanded);
  const tensors = report?.tensors ?? finished;
  const planned = usePlanned(request.base);
  // without a plan the rows are those measured so far
  const places = planned.length > 0 ? planned : tensors;
  const arranged = useMemo(
    () =>
      arrange(
        places.map((t) => ({ ...t, copied: false })),
        expanded,
      ),
    [places, expanded],
  );
  const { grid } = arranged;
  const before = useRef<Heatmap>(undefined);
  const columns = useMemo(() => {
    const byName = new Map(tensors.map((t) => [t.name, t]));
    const measuredOf = (name: string) => {
      const t = byName.get(name);
      return t ? { value: t[metric.id], weight: t.elements, error: 0 } : null;
    };
    const look: CellOf = ({ name }) => {
      const measured = measuredOf(name);
      return { measured, state: measured ? 'measured' : status === 'done' ? 'unchanged' : 'pending' };
    };
    before.current = heatmapOf(grid, look, before.current);
    const place = { id: 'difference', letter: 'Δ', title: choiceName(request.finetuned), note: null };
    return [{ ...place, data: before.current, measuredOf }];
  }, [grid, tensors, metric, status, request]);
  return { ...arranged, metric, columns, scale: useScale(metric, columns), difference: null };
}

const NO_TENSORS: readonly PlanTensor[] = [];

/** Tensors of the base: rows and columns of the chart, before anything is measured. */
function usePlanned(base: string): readonly PlanTensor[] {
  const [planned] = useAnswer(
    { of: '', tensors: NO_TENSORS },
    (worker) =>
      worker.plan(copyOf(base)).then(
        ({ tensors }) => ({ of: base, tensors }),
        // the comparison reports errors of the base; without a plan the rows come in measured order
        () => ({ of: base, tensors: NO_TENSORS }),
      ),
    [base],
  );
  return planned.of === base ? planned.tensors : NO_TENSORS;
}

/** Two models: how they differ, tensor by tensor. */
export function Screen() {
  const found = useStudioState((s) => s.tools.jobs.compare);
  return (
    <div className="stack roomy screen tool-screen">
      <PairPicker />
      <OpenModels />
      <Form />
      <ToolBar kinds={['compare']} />
      {found ? (
        <Result found={found} />
      ) : (
        <div className="empty" role="status">
          <strong>No difference measured yet</strong>
          <span>
            Choose two models and press Measure difference: every tensor is measured, from where the weights
            moved most to whether the change looks like a LoRA. Nothing is changed or uploaded.
          </span>
        </div>
      )}
    </div>
  );
}

/** Settings of the measurement, destination of the report, and the button. */
function Form() {
  const studio = useStudio();
  const values = useStudioState((s) => s.tools.values.difference);
  const busy = useStudioState(whyNoTool);
  const unsaved = useStudioState(whyNotSaved);
  const pair = usePair();
  const { base, finetuned } = pair;
  const problem = optionsProblem(compareOptions, values);
  const name = base && finetuned && fileNameOf('compare', base, finetuned);
  const compare = () => {
    if (base === null || finetuned === null) return;
    const { threshold, loraAnalysis, allSpectra } = values;
    const asked = { base, finetuned, threshold, loraAnalysis, allSpectra };
    // without storage there is still a comparison, only no files
    void beginTool(studio, 'compare', asked, unsaved === null ? name! : undefined);
  };
  return (
    <div className="stack loose">
      <ToolForm tool="difference" />
      <Problem>{problem}</Problem>
      <div className="row wrap apart">
        <Button variant="primary" why={busy ?? pairProblem(pair) ?? problem} onClick={compare}>
          Measure difference
        </Button>
        <SaveTo name={name} />
      </div>
      {unsaved ? <p className="small quiet">{unsaved} The comparison works without report files.</p> : null}
    </div>
  );
}

/** Results so far: a chart that fills in, or the whole report. */
function Result({ found }: { found: ToolJob<'compare'> }) {
  const { report } = found;
  return (
    <>
      <ToolHead
        title={`${choiceName(found.request.base)} → ${choiceName(found.request.finetuned)}`}
        report={report}
      />
      <ToolEnd
        run={found}
        stopped={`Stopped after ${formatCounted(found.finished.length, 'tensor')}.`}
        stoppedHint="What was measured is shown; no files were kept."
      />
      {report ? <Findings report={report} /> : null}
      {found.status === 'failed' && found.finished.length === 0 ? null : (
        <>
          <DifferenceChart found={found} />
          <DifferenceTable found={found} />
        </>
      )}
      {found.saved ? (
        <Section title="Report files">
          <SavedFiles saved={found.saved} isModel={false} />
        </Section>
      ) : null}
    </>
  );
}
