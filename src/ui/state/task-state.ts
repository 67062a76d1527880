/** State of the tasks in the Evaluate tab. Plain, serializable data. */
import type { ErrorReport } from '../../errors';
import type { MetricValue, ScoredModel, ShippedTask, TaskInfo, TaskItem } from '../../reports/tasks';

export interface TasksSlice {
  /** Null until the tab was first shown. */
  shipped: readonly ShippedTask[] | null;
  /** Names of shipped tasks, and of one's own. */
  chosen: readonly string[];
  /** Of tasks that have subsets. */
  subset: string;
  own: readonly { name: string; text: string }[];
  limit: number;
  /** Draws the items at random; null takes the first. */
  sampleSeed: number | null;
  fewshot: number;
  /** Predicted by a trial of the first model, for the settings it was made with. */
  predicted: { key: string; seconds: number; tokens: number } | null;
  /** The first items run to predict the time of all. */
  predicting: boolean;
  run: TaskRun | null;
  /** By `scoreKey`: what every model and merge scored, also on earlier visits. */
  scores: ReadonlyMap<string, SavedScore>;
  /** Earlier visits were asked. */
  recalled: boolean;
  error: ErrorReport | null;
}

/** The last scoring, as far as it got. */
export interface TaskRun {
  tasks: readonly TaskInfo[];
  rows: readonly { id: string; label: string; color: number | null; target: string }[];
  /** Row by row, task by task. */
  items: readonly (readonly (readonly TaskItem[])[])[];
  /** Once all is done. */
  models: readonly ScoredModel[] | null;
}

/** Score of a model or merge on a task. */
export interface SavedScore {
  key: string;
  /** As `targetKey` has it. */
  target: string;
  info: TaskInfo;
  metrics: Record<string, MetricValue>;
  items: readonly TaskItem[];
  tokens: number;
  seconds: number;
  /** Milliseconds since 1970. */
  at: number;
  /** Of Amalgam: another one may score otherwise. */
  version: string;
}

export const initialTasks: TasksSlice = {
  shipped: null,
  chosen: ['sample_trades'],
  subset: '',
  own: [],
  limit: 100,
  sampleSeed: null,
  fewshot: 0,
  predicted: null,
  predicting: false,
  run: null,
  scores: new Map(),
  recalled: false,
  error: null,
};
