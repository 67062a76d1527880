import { memo, useId } from 'react';
import { Swatch } from '../parts/Swatch';
import type { Contributor } from '../state/runs';
import { useStudioState } from '../studio-context';
import type { ColorScale } from './color-scale';
import { HeatmapGrid } from './HeatmapGrid';
import { type Cell, cellPlace, cellValueText, type Heatmap, type LayerGrid } from './heatmap-data';
import { Legend } from './Legend';
import type { ShownMetric } from './metrics';

interface HeatmapFigureProps {
  /** Whose values; empty when the metric is of the merged tensor. */
  contributors: readonly Contributor[];
  /** Default: the contributors, or the merge. */
  title?: string;
  metric: ShownMetric;
  grid: LayerGrid;
  data: Heatmap;
  scale: ColorScale;
  /** Writes the value into each cell where there is room. */
  annotated: boolean;
}

/** One small multiple: caption with the overall value, the grid, and the scale with the value under the pointer. */
export const HeatmapFigure = memo(function HeatmapFigure(props: HeatmapFigureProps) {
  const { contributors, metric, grid, data, scale, annotated } = props;
  const titleId = useId();
  const title = props.title ?? (contributors.map((c) => c.label).join(' × ') || 'Merged model');
  return (
    <figure className="chart panel">
      <figcaption id={titleId}>
        {contributors.map((c) => (
          <Swatch key={c.id} color={c.color} />
        ))}
        <strong className="truncate">{title}</strong>
        <span className="visually-hidden">{metric.label} by layer and module</span>
        <span className="chart-mean small quiet" title={`${metric.label}, mean over all tensors`}>
          <span>{data.mean === null ? '' : `mean ${metric.format(data.mean)}`}</span>
        </span>
      </figcaption>
      <HeatmapGrid
        labelledBy={titleId}
        grid={grid}
        data={data}
        metric={metric}
        scale={scale}
        annotated={annotated}
      />
      <ChartLegend metric={metric} data={data} scale={scale} />
    </figure>
  );
});

/** The scale, and what the cell under the pointer or focus has in this chart. All charts follow the same tensor. */
function ChartLegend({ metric, data, scale }: Pick<HeatmapFigureProps, 'metric' | 'data' | 'scale'>) {
  const name = useStudioState((s) => s.view.hovered ?? s.view.selected);
  const cell = name === null ? undefined : findCell(data, name);
  const where = cell && cellPlace(cell);
  return (
    <>
      <Legend scale={scale} tick={metric.tick} value={cell?.measured?.value ?? null} />
      <p className="readout" aria-hidden="true">
        {cell ? (
          <>
            <span className="truncate">{where}</span>
            <span>{cell.measured ? metric.format(cell.measured.value) : cellValueText(cell, metric)}</span>
          </>
        ) : (
          <span className="faint">point at a cell to read it</span>
        )}
      </p>
    </>
  );
}

function findCell(data: Heatmap, name: string): Cell | undefined {
  for (const row of data.rows) {
    const found = row.cells.find((c) => c?.name === name);
    if (found) return found;
  }
  return data.loose.find((c) => c.name === name);
}
