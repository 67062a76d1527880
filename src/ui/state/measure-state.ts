/** State of the Measure tab: texts, tasks, what was measured of which model, what was tried. Plain, serializable data. */
import type { ErrorReport } from '../../errors';
import type { BestRow, BestText, FindBestReport } from '../../reports/find-best';
import type { LossBlock } from '../../reports/paired-error';
import type { MetricValue, ShippedTask, TaskInfo } from '../../reports/tasks';

export interface MeasureSlice {
  texts: readonly MeasureText[];
  /** The sample texts are opened when the tab is first shown. */
  opening: 'not yet' | 'opening' | 'done' | 'failed';
  openError: ErrorReport | null;
  /** `quick`: only the beginning of each text is read. */
  amount: 'quick' | 'full';
  tasks: TasksSlice;
  /** By `cellKey`: measured once, and saved for the next visit where that is sound. */
  cells: ReadonlyMap<string, Cell>;
  /** Numbers of earlier visits were asked for. */
  recalled: boolean;
  /** Keys of cells that are measured now. */
  running: ReadonlySet<string>;
  /** What was tried for the models of a recipe; null before. */
  found: Found | null;
  /** Seconds that finding the best may take. */
  budget: number;
  /** Id of the column by which rows are drawn, ordered and judged. */
  by: string;
  /** Error of the last job as a whole. */
  error: ErrorReport | null;
}

/** A text to measure on. Its content never changes under its id. */
export interface MeasureText {
  id: string;
  name: string;
  text: string;
  /** SHA-256 in hex of the scored part, by which numbers are saved. */
  sha256: { quick: string; full: string };
  origin: 'sample' | 'own';
  /** Is it a column? */
  chosen: boolean;
}

/** A number of the table: the losses of a model on a text, or its items of a task, block by block. */
export type Cell = Measured | { error: ErrorReport };

export interface Measured {
  blocks: readonly LossBlock[];
  seconds: number;
  bitsPerByte: number | null;
  /** Conversations that the model's chat template refuses. */
  leftOut: number;
  /** When it was measured, in milliseconds since 1970, if that was on an earlier visit. */
  earlier: number | null;
  /** Stopped before all items were done. */
  partial?: true;
  /** Of a task: everything that it scored. */
  score?: TaskRecord;
}

/** Score of a model or merge on a task. */
export interface TaskRecord {
  info: TaskInfo;
  metrics: Record<string, MetricValue>;
  /** Counted items: those that were not refused. */
  items: number;
  /** Milliseconds since 1970. */
  at: number;
}

/** What was tried for some models: rows of the table that are made in memory. */
export interface Found {
  /** The models: as `modelsKey` has it. */
  of: string;
  texts: readonly BestText[];
  /** The texts are those that the contributors generated, or that the recipe names. */
  own: boolean;
  /** In the order they came. */
  rows: readonly BestRow[];
  /** Once it has ended. */
  report: FindBestReport | null;
}

/** Tasks, and which of their items. */
export interface TasksSlice {
  /** Null until the tab was first shown. */
  shipped: readonly ShippedTask[] | null;
  /** Names of shipped tasks, and of one's own. */
  chosen: readonly string[];
  /** Of tasks that have subsets. */
  subset: string;
  own: readonly { name: string; text: string; sha256: string }[];
  limit: number;
  fewshot: number;
}

/** The column of the mean over the texts. */
export const MEAN = 'mean';

export const initialMeasure: MeasureSlice = {
  texts: [],
  opening: 'not yet',
  openError: null,
  amount: 'quick',
  tasks: { shipped: null, chosen: [], subset: '', own: [], limit: 100, fewshot: 0 },
  cells: new Map(),
  recalled: false,
  running: new Set(),
  found: null,
  budget: 20,
  by: MEAN,
  error: null,
};
