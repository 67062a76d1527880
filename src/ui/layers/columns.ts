/**
 * Content of the canvas: rows of layers shared by all columns, and the values of every run in them. Pure, but for a memo of
 * the last drawing.
 */
import { useMemo, useRef } from 'react';
import { sameItems } from '../../merge/prediction/same-items';
import type { TensorReport } from '../../reports/job';
import type { PlanTensor } from '../../reports/plan';
import { type ColorScale, scaleOver } from '../charts/color-scale';
import type { Band } from '../charts/HeatmapGrid';
import {
  differenceOf,
  type GridTensor,
  type Heatmap,
  heatmap,
  type LayerGrid,
  layerGrid,
} from '../charts/heatmap-data';
import { effectOf, type Measured, mean, rangeOf, type ShownMetric } from '../charts/measured';
import { absenceOf, differenceMetric } from '../charts/metric-choice';
import { isAwaited, type Metric, measure, type Subject } from '../charts/metrics';
import { methodName } from '../format/method-name';
import { useSameList } from '../parts/hooks';
import { LETTERS } from '../parts/Section';
import { passesFilter } from '../parts/VirtualTable';
import { recipeKey } from '../state/recipe-identity';
import { useShownTheme, useStudioState } from '../studio-context';
import { type LayersRun, reportsFor, shortNames } from './runs';

/** A column of the canvas. */
export interface CanvasColumn {
  id: string;
  /** `A`, `B`, … */
  letter: string;
  title: string;
  /** Why it has no number, where it gets none. */
  why?: string | null;
  /** Not counted: what it is instead. */
  note: 'merging' | 'predicted' | null;
  data: Heatmap;
  /** Value of any tensor, also of one outside the grid; null where it has none. */
  measuredOf(name: string): Measured | null;
  /** Expected value in a layer for random masks of the same sizes, where the metric has such a reference. */
  chanceOf?(layer: number): number | null;
}

/** What the canvas draws. */
export interface CanvasView<M extends ShownMetric = ShownMetric> {
  metric: M;
  /** Linear layers; experts of a projection as one column, or all of one projection. */
  grid: LayerGrid;
  bands: Band[];
  columns: CanvasColumn[];
  scale: ColorScale;
  difference: { metric: M; data: Heatmap; scale: ColorScale; why?: string | null } | null;
}

interface RunColumn extends CanvasColumn {
  run: LayersRun;
  reports: ReadonlyMap<string, TensorReport>;
}

export interface LayersView extends CanvasView<Metric> {
  subject: Subject;
  columns: RunColumn[];
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

/** Everything the canvas draws. */
export function useLayersView(
  runs: readonly LayersRun[],
  metric: Metric,
  subject: Subject,
  filter: string,
): LayersView {
  const expanded = useStudioState((s) => s.view.expanded);
  const theme = useShownTheme();
  const lists = runs.map((run) => run.tensors);
  const same = useSameList(lists);
  const tensors = useMemo(() => unionOf(same), [same]);
  const arranged = useMemo(
    () => arrange(filter === '' ? tensors : tensors.filter((t) => passesFilter(filter, t.name)), expanded),
    [tensors, filter, expanded],
  );
  const { grid } = arranged;
  const before = useRef<Drawn>({ of: [], columns: new Map() });
  const columns = useMemo(() => {
    const of = [grid, metric, subject];
    const isSame = sameItems(before.current.of, of);
    const titles = shortNames(runs.map(({ name }) => name));
    const made = runs.map((run, i): RunColumn => {
      const old = isSame ? before.current.columns.get(run.id) : undefined;
      const letter = LETTERS[i]!;
      const title = titles[i]!;
      if (old?.run === run && old.letter === letter && old.title === title) return old;
      const reports = reportsFor(run, metric);
      const note = run.state === 'exact' ? null : run.state === 'running' ? 'merging' : 'predicted';
      const data = heatmap(grid, reports, metric, subject, old?.data);
      return {
        ...{ id: run.id, letter, title, note, run, reports, data, why: whyNone(run, metric, data) },
        measuredOf(name) {
          const report = reports.get(name);
          return report && !isAwaited(metric, report) ? measure(metric, report, subject) : null;
        },
        ...(metric.chance ? { chanceOf: (layer) => chanceOf(metric, subject, grid, reports, layer) } : {}),
      };
    });
    before.current = { of, columns: new Map(made.map((column) => [column.run.id, column])) };
    return made;
  }, [runs, grid, metric, subject]);
  const scale = useScale(metric, columns);
  const difference = useMemo(() => {
    const maps = columns.map((c) => c.data);
    const made = differenceView(metric, maps, theme);
    return made && { ...made, why: whyNoDifference(columns, metric, made.data) };
  }, [columns, metric, theme]);
  return useMemo(
    () => ({ metric, subject, ...arranged, columns, scale, difference }),
    [metric, subject, arranged, columns, scale, difference],
  );
}

/** Why a run has no number of a metric and gets none as it is, or null. */
function whyNone({ traits, state, reports }: LayersRun, metric: Metric, { mean: known, rows }: Heatmap) {
  const absent = absenceOf(metric, traits);
  // effects are measured on request
  const isAwaited =
    state === 'running' || reports.size === 0 || rows.length === 0 || metric.measure === effectOf;
  if (absent !== null || known !== null || isAwaited) return absent;
  return state === 'exact'
    ? `This merge did not count ${metric.label.toLowerCase()}.`
    : `What ${methodName(traits.method)} does to a weight is known once it has merged.`;
}

/** Why there is nothing to see between two runs, or null. */
function whyNoDifference(columns: readonly RunColumn[], metric: Metric, { rows }: Heatmap): string | null {
  const lacking = columns.find(({ why, data }) => why || data.mean === null);
  if (lacking?.run.state === 'running') return null;
  if (lacking) return `${lacking.letter} has no such number${lacking.why ? '' : ' yet'}.`;
  if (rows.some(({ cells }) => cells.some((cell) => cell?.measured && cell.measured.value !== 0)))
    return null;
  const [a, b] = columns.map(({ run }) => recipeKey(run.recipe));
  const reason =
    a === b
      ? ': they have the same settings'
      : metric.ofMerge
        ? ''
        : ': it describes the models, whatever a merge does with them';
  return `${metric.label} is the same in A and B, in every layer${reason}.`;
}

/** A value of a row of the canvas. */
interface DepthPoint {
  value: number;
  row: number;
}

/** The means of the layers, a line a run, and what chance would give, on one axis: its ends in words, and any line drawn on it. */
export function depthOf(
  { metric, grid }: Pick<CanvasView, 'metric' | 'grid'>,
  columns: readonly Pick<CanvasColumn, 'data' | 'chanceOf' | 'why'>[],
) {
  const known = (values: readonly (number | null)[]) =>
    values.flatMap((value, row): DepthPoint[] => (value === null ? [] : [{ value, row }]));
  const lines = columns.map(({ data, why }) => (why ? [] : known(data.rows.map((row) => row.mean))));
  const chance = known(grid.layers.map(({ layer }) => columns[0]?.chanceOf?.(layer) ?? null));
  const all = [...lines.flat(), ...chance].map(({ value }) => value);
  const { least, most } = rangeOf(all);
  const margin = Math.max((most - least) * 0.08, metric.isShare ? 0.01 : Math.abs(most) * 0.02 || 0.01);
  const [from, to] = [least - margin, most + margin];
  const last = metric.full.max === null ? to : Math.min(to, metric.full.max);
  return {
    ...{ lines, chance },
    ends: all.length > 0 ? [Math.max(from, metric.full.min), last].map(metric.tick) : [],
    path: (points: readonly DepthPoint[], width: number, y: (row: number) => number) =>
      points.map((p) => `${(((p.value - from) / (to - from)) * width).toFixed(1)},${y(p.row)}`).join(' '),
  };
}

/** B − A of two runs, around 0; null for more or fewer. */
export function differenceView(
  metric: Metric,
  maps: readonly Heatmap[],
  theme: 'light' | 'dark',
): CanvasView<Metric>['difference'] {
  const [a, b] = maps;
  if (!a || !b || maps.length !== 2) return null;
  const data = differenceOf(a, b);
  const signed = differenceMetric(metric);
  return { metric: signed, data, scale: scaleOver(signed, [data], theme) };
}

/** What stands at a difference of columns: it is as sure as the least sure of them. */
export const notePredicted = (columns: readonly Pick<CanvasColumn, 'note'>[]): CanvasColumn['note'] =>
  columns.some(({ note }) => note === 'predicted') ? 'predicted' : null;

/** The mean over a chart; nothing where it has none. */
export function meanText({
  note,
  data,
  metric,
}: Pick<CanvasColumn, 'note' | 'data'> & { metric: ShownMetric }): string {
  if (data.mean === null) return '';
  return `${note === 'predicted' ? '≈\u00a0' : ''}${metric.format(data.mean)}`;
}

/** The scale of the columns; the same object while its ends are the same. */
export function useScale(metric: ShownMetric, columns: readonly CanvasColumn[]): ColorScale {
  const theme = useShownTheme();
  const made = useMemo(
    () =>
      scaleOver(
        metric,
        columns.flatMap(({ data, why }) => (why ? [] : [data])),
        theme,
      ),
    [metric, columns, theme],
  );
  // biome-ignore lint/correctness/useExhaustiveDependencies: its ends and colors say all of it.
  return useMemo(() => made, [metric, made.min, made.max, made.flat, theme]);
}

/** Linear layers as a grid, experts folded or those of one projection apart. */
export function arrange(
  tensors: readonly (GridTensor & { shape: readonly number[] })[],
  expanded: string | null,
): Pick<CanvasView, 'grid' | 'bands'> {
  const linear = tensors.filter(isLinear);
  const grid = layerGrid(expanded === null ? foldExperts(linear) : expertsOf(linear, expanded));
  return { grid, bands: bandsOf(grid) };
}

/** The tensors of several runs, each once. */
export function unionOf(lists: readonly (readonly PlanTensor[])[]): readonly PlanTensor[] {
  const [first = []] = lists;
  if (lists.every((list) => list === first)) return first;
  return [...new Map(lists.flat().map((t) => [t.name, t])).values()];
}

/** A weight matrix of a layer; the color scale covers these. */
export function isLinear({
  layer,
  shape,
  module,
}: Pick<PlanTensor, 'layer' | 'module'> & { shape: readonly number[] }): boolean {
  return layer !== null && shape.length > 1 && !/(^|[._])(layer)?norm|conv/.test(module);
}

/** What stands many times in a layer: experts, and the blocks of one block of a model that draws. */
const EXPERT = /^(.*(?:experts|transformer_blocks))\.(\d+)\.(.+)$/;

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
    const key = `${tensor.stack} ${tensor.layer} ${experts} ${projection}`;
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
      stack: first.stack,
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
    const { name, layer, stack, copied } = tensor;
    return [{ name, layer, stack, copied, module: match[2]! }];
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

/** Expected value of a metric in a layer for random masks of the same sizes. */
function chanceOf(
  metric: Metric,
  subject: Subject,
  grid: LayerGrid,
  reports: RunColumn['reports'],
  layer: number,
): number | null {
  const row = grid.layers.find((one) => one.layer === layer)?.tensors ?? [];
  const values = row
    .flatMap((tensor) => tensor?.members ?? tensor ?? [])
    .map(({ name }) => {
      const report = reports.get(name);
      const value = report && metric.chance?.(report, subject);
      return typeof value === 'number' ? { value, weight: report!.elements } : null;
    });
  return mean(values);
}
