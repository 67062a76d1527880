/** Metrics of the difference chart, and their cells. Pure. */

import { formatPercent, formatReal } from '../../formats/quantity';
import type { PlanTensor } from '../../reports/plan';
import { type Cell, type Heatmap, type LayerGrid, layerGrid } from '../../ui/charts/heatmap-data';
import { mean } from '../../ui/charts/measured';
import { percentTick, realTick, type ShownMetric } from '../../ui/charts/metrics';
import type { compareOptions } from './options';
import type { TensorDifference } from './report';

export type DifferenceMetricId = (typeof compareOptions.metric.values)[number];

interface DifferenceMetric extends ShownMetric {
  id: DifferenceMetricId;
}

const SHARED = { diverging: false, absent: 'not compared' } as const;
const share = (zeroTo: string) => ({
  ...SHARED,
  full: { min: 0, max: 1 },
  format: formatPercent,
  tick: percentTick,
  phrase: (v: number) => `${formatPercent(v)} ${zeroTo}`,
});
const size = (words: string) => ({
  ...SHARED,
  full: { min: 0, max: null },
  format: formatReal,
  tick: realTick,
  phrase: (v: number) => `${words} ${formatReal(v)}`,
});

export const differenceMetrics: readonly DifferenceMetric[] = [
  {
    id: 'relative',
    label: 'Relative',
    meaning: '‖Δ‖ / ‖base‖: how far the tensor has moved, as a part of its own norm.',
    ...size('relative difference'),
  },
  {
    id: 'meanAbs',
    label: 'Mean |Δ|',
    meaning: 'How far a weight has moved on average.',
    ...size('mean change'),
  },
  {
    id: 'maxAbs',
    label: 'Max |Δ|',
    meaning: 'How far the weight that moved most has moved.',
    ...size('largest change'),
  },
  {
    id: 'changedRatio',
    label: 'Changed',
    meaning: 'Share of weights that moved by more than the threshold.',
    ...share('changed'),
  },
  {
    id: 'cosine',
    label: 'Cosine',
    meaning: 'Cosine of the tensor before and after: 1 is the same direction.',
    ...SHARED,
    full: { min: 0, max: 1 },
    format: cosineText,
    tick: realTick,
    phrase: (v) => `cosine ${cosineText(v)}`,
  },
  {
    id: 'signFlipRatio',
    label: 'Sign flips',
    meaning: 'Share of weights that changed their sign.',
    ...share('with the sign flipped'),
    full: { min: 0, max: null },
  },
  {
    id: 'bitDifferentRatio',
    label: 'Bits differ',
    meaning: 'Share of weights whose stored bits differ, however small the change.',
    ...share('with different bits'),
  },
];

export function differenceMetric(id: DifferenceMetricId): DifferenceMetric {
  return differenceMetrics.find((m) => m.id === id) as DifferenceMetric;
}

/** Rows and columns: the tensors of the base; without a plan, those measured so far. */
export function differenceGrid(
  planned: readonly PlanTensor[],
  tensors: readonly TensorDifference[],
): LayerGrid {
  if (planned.length > 0) return layerGrid(planned);
  return layerGrid(tensors.map((t) => ({ ...t, copied: false })));
}

/** The values of the chart; rows equal to those in `before` are the same objects. */
export function differenceMap(
  grid: LayerGrid,
  tensors: ReadonlyMap<string, TensorDifference>,
  id: DifferenceMetricId,
  over: boolean,
  before?: Heatmap,
): Heatmap {
  const cell = ({ name, layer, module }: { name: string; layer: number | null; module: string }): Cell => {
    const found = tensors.get(name);
    if (!found) return { name, layer, module, state: over ? 'unchanged' : 'pending', measured: null };
    return {
      name,
      layer,
      module,
      state: 'measured',
      measured: { value: found[id], weight: found.elements, error: 0 },
    };
  };
  const rows = grid.layers.map(({ tensors: row, ...place }, i) => {
    const cells = row.map((t) => t && cell(t));
    const old = before?.rows[i];
    const same =
      old?.layer === place.layer &&
      old.cells.length === cells.length &&
      old.cells.every(
        (c, j) => c?.state === cells[j]?.state && c?.measured?.value === cells[j]?.measured?.value,
      );
    return same ? old : { ...place, cells, mean: mean(cells.map((c) => c?.measured)) };
  });
  const loose = grid.loose.map(cell);
  const all = [...rows.flatMap((r) => r.cells), ...loose];
  return { rows, loose, mean: mean(all.map((c) => c?.measured)) };
}

function cosineText(value: number): string {
  const text = value.toFixed(4).replace('-', '\u2212');
  return value < 1 && text === '1.0000' ? '>0.9999' : text;
}
