/** The layer × module grid of a checkpoint, and its values. Pure: from plans and reports of tensors to rows of cells. */
import { sameItems } from '../../merge/prediction/same-items';
import type { TensorReport } from '../../reports/job';
import { differenceIn, type Measured, mean, rangeOf, type ShownMetric } from './measured';
import { isAwaited, type Metric, measure, type Subject } from './metrics';

/** Fields of a tensor that the grid needs; plans and reports both have them. */
export interface GridTensor {
  name: string;
  layer: number | null;
  stack?: string | undefined;
  module: string;
  copied: boolean;
  /** The tensors that a cell stands for: the experts of one projection. */
  members?: readonly GridTensor[];
}

export interface LayerGrid<T extends GridTensor = GridTensor> {
  modules: GridModule[];
  /** One row per layer, a hole where a layer lacks the module; each stack of layers is a group of rows. */
  layers: (GridRow & { tensors: (T | null)[] })[];
}

export interface GridRow {
  /** The place of the row: the number of the layer, and beyond those of the main stack for those of others. */
  layer: number;
  /** Position in a secondary stack of layers: the stack's name, `vision_tower`, and the layer's number in it. */
  other?: { stack: string; number: number };
}

interface GridModule {
  /** As the tensor names have it, `mlp.down_proj`. */
  module: string;
  /** For the column head: `down`. */
  label: string;
}

/** Where the modules of common architectures stand within a block, in the order data flows through them. */
const FLOW: readonly RegExp[] = [
  /^(input_layernorm|ln_1|attention_norm|pre_attention)/,
  /(^|[._])q_proj|query/,
  /(^|[._])k_proj|key/,
  /(^|[._])v_proj|value/,
  /qkv|c_attn/,
  /(q_norm|k_norm)/,
  /(^|[._])o_proj|attn\.(c_proj|dense|out_proj)/,
  /^(post_attention_layernorm|ln_2|ffn_norm|pre_feedforward|post_attention)/,
  /gate_proj|(^|\.)w1$/,
  /up_proj|c_fc|fc1|dense_h_to_4h|(^|\.)w3$/,
  /down_proj|mlp\.c_proj|fc2|dense_4h_to_h|(^|\.)w2$/,
];

/**
 * Arranges tensors into the grid. Modules follow the flow of data, unknown ones come last in file order; the stack of most
 * tensors comes first.
 */
export function layerGrid<T extends GridTensor>(tensors: readonly T[]): LayerGrid<T> {
  const columns = new Map<string, number>();
  const stacks = new Map<string, Map<number, Map<string, T>>>();
  const towers = towersOf(tensors);
  for (const tower of ['', ...towers.values()]) stacks.set(tower, new Map());
  for (const tensor of tensors) {
    if (tensor.layer === null) continue;
    const rows = stacks.get(towers.get(stackOf(tensor)) ?? '')!;
    const row = rows.get(tensor.layer) ?? new Map<string, T>();
    rows.set(tensor.layer, row);
    const column = freeColumn(row, columnOf(tensor));
    row.set(column, tensor);
    if (!columns.has(column)) columns.set(column, columns.size);
  }
  const ordered = [...columns.keys()].sort(
    (a, b) => flow(a) - flow(b) || (columns.get(a) ?? 0) - (columns.get(b) ?? 0),
  );
  const labels = moduleLabels(ordered);
  const layers: LayerGrid<T>['layers'] = [];
  for (const [stack, rows] of stacks) {
    const from = stack === '' ? 0 : (layers.at(-1)?.layer ?? -1) + 1;
    for (const number of [...rows.keys()].sort((a, b) => a - b)) {
      layers.push({
        layer: from + number,
        ...(stack === '' ? {} : { other: { stack, number } }),
        tensors: ordered.map((module) => rows.get(number)?.get(module) ?? null),
      });
    }
  }
  return {
    modules: ordered.map((module, i) => ({ module, label: labels[i] ?? module })),
    layers,
  };
}

/** A row's number, short: `12`, or `v12` in the stack of a vision tower. */
export function rowLabel({ layer, other }: GridRow): string {
  return other ? `${other.stack[0]}${other.number}` : String(layer);
}

/** A row in words: `layer 12`, or `vision_tower, layer 12`. */
export function rowWords({ layer, other }: GridRow): string {
  return other ? `${other.stack}, layer ${other.number}` : `layer ${layer}`;
}

export interface Cell {
  name: string;
  layer: number | null;
  module: string;
  /** Of a layer of another stack than the main one: which. */
  stack?: string;
  state: 'pending' | 'copied' | 'unchanged' | 'measured';
  measured: Measured | null;
  /** The least and the largest value of the tensors in a cell, and their number. */
  range?: { least: number; most: number; count: number };
}

export interface CellRow extends GridRow {
  cells: (Cell | null)[];
  /** Weighted mean of the row, null while nothing is measured. */
  mean: number | null;
}

export interface Heatmap {
  rows: CellRow[];
  /** Over all tensors. */
  mean: number | null;
}

/** The state of a tensor's cell, and its value. */
export type CellOf = (tensor: GridTensor) => Pick<Cell, 'state' | 'measured'>;

/** The values of one chart. `reports` holds what has been measured so far, by tensor name; for `before` see {@link heatmapOf}. */
export function heatmap(
  grid: LayerGrid,
  reports: ReadonlyMap<string, TensorReport>,
  metric: Metric,
  subject: Subject,
  before?: Heatmap,
): Heatmap {
  const look = (tensor: GridTensor): ReturnType<CellOf> => {
    const report = reports.get(tensor.name);
    const awaited = !report || isAwaited(metric, report);
    const measured = awaited ? null : measure(metric, report, subject);
    if (measured) return { state: 'measured', measured };
    const state = (awaited ? tensor : report).copied ? 'copied' : awaited ? 'pending' : 'unchanged';
    return { state, measured };
  };
  return heatmapOf(grid, look, before);
}

/**
 * A chart of any values. Cells and rows that say the same as in `before` are the very ones of `before`, and so is the whole:
 * only what has news is drawn again.
 */
export function heatmapOf(grid: LayerGrid, look: CellOf, before?: Heatmap): Heatmap {
  const cell = (tensor: GridTensor, old: Cell | null | undefined): Cell => {
    const { name, layer, module, members } = tensor;
    const looks = members?.map(look);
    const values = looks?.flatMap((one) => one.measured ?? []) ?? [];
    const { state, measured }: ReturnType<CellOf> = looks
      ? {
          state: values.length > 0 ? 'measured' : (looks[0]?.state ?? 'pending'),
          measured: meanMeasured(values),
        }
      : look(tensor);
    const same =
      old?.name === name &&
      old.state === state &&
      old.measured?.value === measured?.value &&
      old.measured?.error === measured?.error;
    if (same) return old;
    const range = looks && { ...rangeOf(values.map((v) => v.value)), count: looks.length };
    return { name, layer, module, state, measured, ...(range ? { range } : {}) };
  };
  const rows = grid.layers.map(({ tensors, ...place }, i): CellRow => {
    const old = before?.rows[i];
    const stack = place.other?.stack;
    const cells = tensors.map((t, j) => {
      const found = t && cell(t, old?.cells[j]);
      return found && stack !== undefined && found.stack === undefined ? { ...found, stack } : found;
    });
    return old?.layer === place.layer && sameItems(old.cells, cells)
      ? old
      : { ...place, cells, mean: mean(cells.map((c) => c?.measured)) };
  });
  return before && sameItems(before.rows, rows) ? before : { rows, mean: meanOf(rows) };
}

function meanOf(rows: readonly CellRow[]): number | null {
  return mean(rows.flatMap(({ cells }) => cells.map((c) => c?.measured)));
}

/** The weighted mean of independent values, with its error. */
export function meanMeasured(values: readonly Measured[]): Measured | null {
  const value = mean(values);
  if (value === null) return null;
  const weight = values.reduce((sum, v) => sum + v.weight, 0);
  const error = Math.sqrt(values.reduce((sum, v) => sum + (v.error * v.weight) ** 2, 0)) / weight;
  return { value, weight, error };
}

// ---------------------------------------------------------------- one heatmap less another

/** `b` − `a`, laid out as `b`; a cell that lacks a value on either side has none. */
export function differenceOf(a: Heatmap, b: Heatmap): Heatmap {
  const cells = a.rows.flatMap((row) => row.cells.flatMap((cell) => cell ?? []));
  const before = new Map(cells.map((cell) => [cell.name, cell]));
  const minus = (cell: Cell): Cell => {
    const old = before.get(cell.name)?.measured;
    if (!cell.measured || !old)
      return { ...cell, state: cell.measured ? 'pending' : cell.state, measured: null };
    // the range of what a cell stands for is that of B alone
    const { range: _, ...place } = cell;
    return { ...place, measured: differenceIn(old, cell.measured) };
  };
  const rows = b.rows.map(({ cells, ...row }) => {
    const changed = cells.map((cell) => cell && minus(cell));
    return { ...row, cells: changed, mean: mean(changed.map((cell) => cell?.measured)) };
  });
  return { rows, mean: meanOf(rows) };
}

/** Whether two lists are of the same cells, and the same of them have values. */
export function sameStates(a: readonly (Cell | null)[], b: readonly (Cell | null)[]): boolean {
  return (
    a.length === b.length &&
    a.every((cell, i) => cell === b[i] || (cell?.name === b[i]?.name && cell?.state === b[i]?.state))
  );
}

/** Where a cell is: `layer 12, mlp.down_proj`, or `vision_tower, layer 12, mlp.fc1`. */
export function cellPlace({ layer, module, stack }: Cell): string {
  if (layer === null) return module;
  return `${stack === undefined ? '' : `${stack}, `}layer ${layer}, ${module}`;
}

/** A cell in words: `layer 12, mlp.down_proj, 80.1 % zero`. */
export function cellText(cell: Cell, metric: ShownMetric): string {
  return `${cellPlace(cell)}, ${cellValueText(cell, metric)}`;
}

/** The value part of a cell's words. */
function cellValueText(cell: Cell, metric: ShownMetric): string {
  switch (cell.state) {
    case 'measured': {
      const { value, error } = cell.measured ?? { value: Number.NaN, error: 0 };
      const said =
        error > 0 ? `about ${metric.phrase(value)}, within ${metric.format(error)}` : metric.phrase(value);
      const { range } = cell;
      return range
        ? `${said}, mean of ${range.count} from ${metric.format(range.least)} to ${metric.format(range.most)}`
        : said;
    }
    case 'copied':
      return 'copied unchanged';
    case 'unchanged':
      return metric.absent;
    case 'pending':
      return 'not measured yet';
  }
}

/** Values of the cells of layers that have one. */
export function linearValues({ rows }: Heatmap): number[] {
  return rows.flatMap((row) => row.cells.flatMap((cell) => cell?.measured?.value ?? []));
}

/** Their errors. */
export function linearErrors({ rows }: Heatmap): number[] {
  return rows.flatMap((row) => row.cells.flatMap((cell) => cell?.measured?.error ?? []));
}

/** The least and the largest value of several charts together, for a scale they share; nothing where none is measured. */
export function extremeValues(heatmaps: readonly Heatmap[]): number[] {
  let least = Number.POSITIVE_INFINITY;
  let most = Number.NEGATIVE_INFINITY;
  const look = (cell: Cell | null) => {
    if (!cell?.measured) return;
    if (cell.measured.value < least) least = cell.measured.value;
    if (cell.measured.value > most) most = cell.measured.value;
  };
  for (const { rows } of heatmaps) for (const { cells } of rows) for (const cell of cells) look(cell);
  return least <= most ? [least, most] : [];
}

/** Short labels for module names, all different: `self_attn.q_proj` → `q`, `input_layernorm` → `input norm`. */
export function moduleLabels(modules: readonly string[]): string[] {
  const short = modules.map((module) => {
    const bias = module.endsWith('.bias') ? ' bias' : '';
    const last =
      module
        .replace(/\.bias$/, '')
        .split('.')
        .at(-1) ?? module;
    const label = last
      .replace(/_proj$/, '')
      .replace(/_?layernorm$/, ' norm')
      .replace('post_attention', 'post')
      .replace('feedforward', 'ff')
      .replaceAll('_', ' ')
      .trim();
    return `${label}${bias}`;
  });
  const isTwice = (all: readonly string[], label: string) =>
    all.filter((other) => other === label).length > 1;
  // the router of experts, `mlp.gate`, beside their own gates
  const longer = short.map((label, i) =>
    isTwice(short, label) ? `${parentOf(modules[i]!)} ${label}` : label,
  );
  return longer.map((label, i) => (isTwice(longer, label) ? (modules[i] ?? label) : label));
}

/** `experts` of `mlp.experts.*.gate_proj`. */
function parentOf(module: string): string {
  const parts = module.replace(/\.bias$/, '').split('.');
  return parts.slice(0, -1).findLast((part) => !/^(\*|\d+)$/.test(part)) ?? '';
}

function columnOf(tensor: GridTensor): string {
  const isBias = tensor.name.endsWith('.bias') && !tensor.module.endsWith('bias');
  return isBias ? `${tensor.module}.bias` : tensor.module;
}

/** What its layer is of, or the name of a tensor up to the number of its layer. */
function stackOf({ name, layer, stack }: GridTensor): string {
  if (stack !== undefined) return stack;
  return layer === null ? '' : name.slice(0, Math.max(0, name.search(/(?:^|\.)\d+\./)));
}

/** Name of each secondary stack of layers, `vision_tower`; none for the stack of most tensors, unless all have a name. */
function towersOf(tensors: readonly GridTensor[]): Map<string, string> {
  const named = new Set(tensors.flatMap(({ stack }) => stack ?? []));
  if (named.size > 0) return new Map([...named].sort().map((stack) => [stack, stack]));
  const sizes = new Map<string, number>();
  for (const tensor of tensors) {
    if (tensor.layer !== null) sizes.set(stackOf(tensor), (sizes.get(stackOf(tensor)) ?? 0) + 1);
  }
  const [main = '', ...others] = [...sizes.keys()].sort((a, b) => (sizes.get(b) ?? 0) - (sizes.get(a) ?? 0));
  const mainParts = new Set(main.split('.'));
  return new Map(
    others.map((stack) => {
      const own = stack.split('.').filter((part) => !mainParts.has(part));
      return [stack, (own.length > 0 ? own : stack.split('.')).join('.') || 'layers'];
    }),
  );
}

/** Two tensors of one layer and module (an unusual architecture) get two columns. */
function freeColumn(row: ReadonlyMap<string, unknown>, column: string): string {
  if (!row.has(column)) return column;
  let n = 2;
  while (row.has(`${column} ${n}`)) n += 1;
  return `${column} ${n}`;
}

function flow(module: string): number {
  const at = FLOW.findIndex((pattern) => pattern.test(module));
  return at < 0 ? FLOW.length : at;
}
