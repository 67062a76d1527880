/**
 * Content of the canvas: rows of layers shared by all columns, and the values of every run in them. Pure, but for a memo of
 * the last drawing.
 */
import { useMemo, useRef } from 'react';
import { sameItems } from '../../merge/prediction/same-items';
import type { TensorReport } from '../../reports/job';
import type { PlanTensor } from '../../reports/plan';
import { type ColorScale, colorScale, domain, percentileDomain } from '../charts/color-scale';
import { differenceMetric, differenceOf } from '../charts/difference';
import type { Band } from '../charts/HeatmapGrid';
import {
  type Cell,
  extremeValues,
  type GridTensor,
  type Heatmap,
  heatmap,
  type LayerGrid,
  layerGrid,
  meanMeasured,
} from '../charts/heatmap-data';
import { type Measured, rangeOf } from '../charts/measured';
import type { Metric, Subject } from '../charts/metrics';
import { passesFilter } from '../parts/TableFilter';
import { useSameList } from '../parts/use-same-list';
import { useShownTheme, useStudioState } from '../studio-context';
import { type LayersRun, PAIR, reportsFor } from './runs';

interface RunColumn {
  run: LayersRun;
  /** `A`, `B`, … */
  letter: string;
  data: Heatmap;
  reports: ReadonlyMap<string, TensorReport>;
}

export interface LayersView {
  metric: Metric;
  subject: Subject;
  /** Linear layers; experts of a projection as one column, or all of one projection. */
  grid: LayerGrid;
  bands: Band[];
  /** Norms, biases, embedding, head. */
  loose: readonly PlanTensor[];
  columns: RunColumn[];
  scale: ColorScale;
  difference: { metric: Metric; data: Heatmap; scale: ColorScale } | null;
}

/** Content of the screen: the canvas, and its runs; a metric of two runs shows them as one. */
export interface ShownLayers {
  view: LayersView;
  runs: readonly LayersRun[];
}

/** The columns of the last drawing, and their inputs besides the runs. */
interface Drawn {
  of: readonly unknown[];
  columns: ReadonlyMap<string, RunColumn>;
}

/** Letters of the shown runs, by their places. */
export const LETTERS = ['A', 'B', 'C', 'D'];

/** Everything the canvas draws. */
export function useLayersView(
  runs: readonly LayersRun[],
  metric: Metric,
  subject: Subject,
  filter: string,
): LayersView {
  const expanded = useStudioState((s) => s.view.expanded);
  const extent = useStudioState((s) => s.view.scale);
  const theme = useShownTheme();
  const lists = runs.map((run) => run.tensors);
  const same = useSameList(lists);
  const tensors = useMemo(() => unionOf(same), [same]);
  const { grid, loose, bands } = useMemo(() => {
    const linear: PlanTensor[] = [];
    const others: PlanTensor[] = [];
    for (const t of tensors) {
      if (passesFilter(filter, t.name)) (isLinear(t) ? linear : others).push(t);
    }
    const arranged = expanded === null ? foldExperts(linear) : expertsOf(linear, expanded);
    const made = layerGrid(arranged);
    return { grid: made, bands: bandsOf(made), loose: others };
  }, [tensors, filter, expanded]);
  const before = useRef<Drawn>({ of: [], columns: new Map() });
  const columns = useMemo(() => {
    const of = [grid, metric, subject];
    const isSame = sameItems(before.current.of, of);
    const made = runs.map((run, i): RunColumn => {
      const old = isSame ? before.current.columns.get(run.id) : undefined;
      const letter = run.id === PAIR ? 'A | B' : LETTERS[i]!;
      if (old?.run === run && old.letter === letter) return old;
      const reports = reportsFor(run, metric);
      const data = heatmap(grid, reports, metric, subject, old?.data);
      return { run, letter, reports, data };
    });
    before.current = { of, columns: new Map(made.map((column) => [column.run.id, column])) };
    return made;
  }, [runs, grid, metric, subject]);
  const maps = columns.map((c) => c.data);
  const ends =
    extent === 'full'
      ? domain(metric, extremeValues(maps), 'full')
      : percentileDomain(metric, maps.flatMap(linearValues), leastRange(metric, maps));
  const scale = useMemo(
    () => colorScale(metric, ends.min, ends.max, theme),
    [metric, ends.min, ends.max, theme],
  );
  const difference = useMemo(() => {
    const [a, b] = columns;
    if (!a || !b || columns.length !== 2) return null;
    const data = differenceOf(a.data, b.data);
    const signed = differenceMetric(metric);
    const { min, max } = percentileDomain(signed, linearValues(data), leastRange(metric, [data]));
    return { metric: signed, data, scale: colorScale(signed, min, max, theme) };
  }, [columns, metric, theme]);
  return useMemo(
    () => ({ metric, subject, grid, bands, loose, columns, scale, difference }),
    [metric, subject, grid, bands, loose, columns, scale, difference],
  );
}

/** Least width of a scale, so that values which hardly differ look alike. */
function leastRange({ full }: Metric, maps: readonly Heatmap[]): number {
  if (full.max !== null) return 0.02;
  const [, most = 0] = extremeValues(maps);
  return Math.abs(most) * 0.05 || 1;
}

/** Values of the cells that have one. */
export function linearValues({ rows }: Heatmap): number[] {
  return rows.flatMap((row) => row.cells.flatMap((cell) => cell?.measured?.value ?? []));
}

/** The tensors of several runs, each once. */
function unionOf(lists: readonly (readonly PlanTensor[])[]): readonly PlanTensor[] {
  const [first = []] = lists;
  if (lists.every((list) => list === first)) return first;
  return [...new Map(lists.flat().map((t) => [t.name, t])).values()];
}

/** A weight matrix of a layer; the color scale covers these. */
export function isLinear({ layer, shape, module }: PlanTensor): boolean {
  return layer !== null && shape.length > 1 && !/(^|[._])(layer)?norm|conv/.test(module);
}

const EXPERT = /^(.*experts)\.(\d+)\.(.+)$/;

/** Experts of a layer's projection as one tensor that stands for them. */
function foldExperts<T extends GridTensor>(tensors: readonly T[]): GridTensor[] {
  const folds = new Map<string, T[]>();
  const kept: GridTensor[] = [];
  for (const tensor of tensors) {
    const match = EXPERT.exec(tensor.module);
    if (!match) {
      kept.push(tensor);
      continue;
    }
    const [, experts, , projection] = match;
    const key = `${tensor.layer} ${experts} ${projection}`;
    const known = folds.get(key);
    if (known) known.push(tensor);
    else folds.set(key, [tensor]);
  }
  for (const members of folds.values()) {
    const [first] = members as [T, ...T[]];
    const module = first.module.replace(EXPERT, '$1.*.$3');
    kept.push({
      name: first.name.replace(first.module, module),
      layer: first.layer,
      module,
      copied: members.every((m) => m.copied),
      members,
    });
  }
  return kept;
}

/** The experts of one folded module, a column each: `mlp.experts.*.gate_proj`. */
function expertsOf<T extends GridTensor>(tensors: readonly T[], module: string): GridTensor[] {
  return tensors.flatMap((tensor) => {
    const match = EXPERT.exec(tensor.module);
    if (!match || tensor.module.replace(EXPERT, '$1.*.$3') !== module) return [];
    return [{ name: tensor.name, layer: tensor.layer, copied: tensor.copied, module: match[2]! }];
  });
}

/** Attention, MLP and experts over the columns, where they stand side by side. */
function bandsOf({ modules }: LayerGrid): Band[] {
  const bands: Band[] = [];
  for (const { module } of modules) {
    const label = /experts/.test(module)
      ? 'experts'
      : /attn|attention/.test(module)
        ? 'attention'
        : /mlp|feed_forward|ffn/.test(module)
          ? 'MLP'
          : '';
    const last = bands.at(-1);
    if (last?.label === label) last.columns += 1;
    else bands.push({ label, columns: 1 });
  }
  return bands.every((band) => band.label !== '') ? bands : [];
}

/** Expected value of a metric in a layer for random masks of the same sizes, where it has such a reference. */
export function chanceOf(view: LayersView, { reports }: RunColumn, layer: number): number | null {
  const { metric, subject, grid } = view;
  if (!metric.chance) return null;
  let [sum, weight] = [0, 0];
  for (const tensor of grid.layers.find((row) => row.layer === layer)?.tensors ?? []) {
    for (const { name } of tensor?.members ?? (tensor ? [tensor] : [])) {
      const report = reports.get(name);
      if (!report) continue;
      const value = metric.chance(report, subject);
      if (value === null) continue;
      sum += value * report.elements;
      weight += report.elements;
    }
  }
  return weight > 0 ? sum / weight : null;
}

export interface Statistics {
  mean: Measured;
  deviation: number;
  least: number;
  most: number;
  cells: number;
}

/** Mean, standard deviation and ends of the cells of some layers. */
export function statisticsOf({ rows }: Heatmap, layers: readonly [number, number] | null): Statistics | null {
  const cells = rows
    .filter(({ layer }) => !layers || (layer >= layers[0] && layer <= layers[1]))
    .flatMap((row) => row.cells)
    .flatMap((cell: Cell | null) => cell?.measured ?? []);
  const mean = meanMeasured(cells);
  if (!mean) return null;
  const variance = cells.reduce((sum, c) => sum + c.weight * (c.value - mean.value) ** 2, 0) / mean.weight;
  return { mean, deviation: Math.sqrt(variance), ...rangeOf(cells.map((c) => c.value)), cells: cells.length };
}
