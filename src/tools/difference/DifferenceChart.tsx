import { memo, useEffect, useMemo, useRef, useState } from 'react';
import { copyOf } from '../../formats/recipe';
import type { PlanTensor } from '../../reports/plan';
import { colorScale, domain } from '../../ui/charts/color-scale';
import { HeatmapFigure } from '../../ui/charts/HeatmapFigure';
import { extremeValues, type Heatmap } from '../../ui/charts/heatmap-data';
import { Segmented } from '../../ui/parts/Segmented';
import { choiceName } from '../../ui/state/model-choices';
import { editTool } from '../../ui/state/tool-jobs';
import type { ToolJob } from '../../ui/state/tool-state';
import { useShownTheme, useStudio, useStudioState } from '../../ui/studio-context';
import {
  type DifferenceMetricId,
  differenceGrid,
  differenceMap,
  differenceMetric,
  differenceMetrics,
} from './Metrics';

const NO_CONTRIBUTORS: never[] = [];

/** The layer × module chart of a comparison, filling in as tensors finish. */
export const DifferenceChart = memo(function DifferenceChart({ found }: { found: ToolJob<'compare'> }) {
  const studio = useStudio();
  const theme = useShownTheme();
  const metric = differenceMetric(useStudioState((s) => s.tools.values.difference.metric));
  const extent = useStudioState((s) => s.tools.values.difference.scale);
  const { status } = found;
  const tensors = found.report?.tensors ?? found.finished;
  const planned = usePlanned(found.request.base);
  // without a plan the rows are those measured so far
  const measured = planned.length > 0 ? NO_TENSORS : tensors;
  const grid = useMemo(() => differenceGrid(planned, measured), [planned, measured]);
  const byName = useMemo(() => new Map(tensors.map((t) => [t.name, t])), [tensors]);
  const before = useRef<{ id: DifferenceMetricId; data: Heatmap } | null>(null);
  const data = useMemo(() => {
    const old = before.current?.id === metric.id ? before.current.data : undefined;
    const map = differenceMap(grid, byName, metric.id, status === 'done', old);
    before.current = { id: metric.id, data: map };
    return map;
  }, [grid, byName, metric.id, status]);
  const { min, max } = domain(metric, extremeValues([data]), extent);
  const scale = useMemo(() => colorScale(metric, min, max, theme), [metric, min, max, theme]);
  return (
    <section className="stack difference-chart" aria-label="Where the weights moved">
      <div className="layers-bar">
        <div className="scroll-x layers-metric">
          <Segmented<DifferenceMetricId>
            label="Metric"
            value={metric.id}
            options={differenceMetrics.map((m) => ({ value: m.id, label: m.label }))}
            onChange={(next) => editTool(studio, 'difference', { metric: next })}
          />
        </div>
        <Segmented
          label="Color scale"
          value={extent}
          options={[
            { value: 'full', label: 'Full scale' },
            { value: 'fit', label: 'Fit' },
          ]}
          onChange={(next) => editTool(studio, 'difference', { scale: next })}
        />
        <p className="small quiet layers-meaning">{metric.meaning}</p>
      </div>
      <HeatmapFigure
        contributors={NO_CONTRIBUTORS}
        title={choiceName(found.request.finetuned)}
        metric={metric}
        grid={grid}
        data={data}
        scale={scale}
        annotated
      />
    </section>
  );
});

const NO_TENSORS: never[] = [];

/** Tensors of the base: rows and columns of the chart, before anything is measured. */
function usePlanned(base: string): readonly PlanTensor[] {
  const studio = useStudio();
  const [planned, setPlanned] = useState<{ base: string; tensors: PlanTensor[] } | null>(null);
  useEffect(() => {
    let isGone = false;
    studio.worker.plan(copyOf(base)).then(
      ({ tensors }) => isGone || setPlanned({ base, tensors }),
      // the comparison itself says what is wrong with the base; without a plan the rows come as they are measured
      () => undefined,
    );
    return () => {
      isGone = true;
    };
  }, [studio, base]);
  return planned?.base === base ? planned.tensors : NO_TENSORS;
}
