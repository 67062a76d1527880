/** Accuracy on tasks, as it crosses the worker boundary. Field names of metrics and items are lm-evaluation-harness's. */
import type { ErrorReport } from '../errors';
import type { BackendChoice, BackendKind } from './backend';
import type { RunningProgress, RunTarget } from './evaluate';

/** A task that ships, by its name; or one's own: see `ownTask`. */
export type TaskSource = { name: string } | { file: { name: string; text: string } };

/** A task that ships. */
export interface ShippedTask {
  /** As it is asked for; of a task with subsets with `_<subset>` behind it. */
  name: string;
  title: string;
  /** `owner/name` on the Hub; null for one whose rows ship, too. */
  dataset: string | null;
  metrics: string[];
  subsets: string[];
  /** Of models that make embeddings of texts, or score pairs of them. */
  embeds?: true;
}

export interface ScoreTasksRequest {
  targets: RunTarget[];
  tasks: TaskSource[];
  /** Items of each task, the first ones; null takes all. */
  limit: number | null;
  /** Draws them at random instead, by this seed. */
  sampleSeed?: number;
  /** Examples in front of each item; null for the task's own number, else none. */
  fewshot: number | null;
  /** Default 1234, as the harness. */
  fewshotSeed?: number;
  engine: BackendChoice;
}

/** What is asked of a model; the last two of its embeddings, or of its scores of pairs. */
export type OutputType = 'multiple_choice' | 'loglikelihood' | 'generate_until' | 'similarity' | 'retrieval';

/** Description of a task, known once its rows are read. */
export interface TaskInfo {
  task: string;
  version: number | null;
  outputType: OutputType;
  /** `owner/name@commit`, null for rows of one's own; the split that is scored. */
  dataset: string | null;
  /** The `dataset_name` of the task, where its dataset has several. */
  subset: string | null;
  split: string | null;
  metrics: string[];
  fewshot: number;
  /** Items there are, and those that are scored. */
  original: number;
  effective: number;
  /** By which the scored items were drawn; null for the first ones, or all. */
  sampleSeed: number | null;
}

/** One item as a model answered it. */
export interface TaskItem {
  /** Row of the split. */
  docId: number;
  /** The right choice; null where the item is no choice. */
  target: number | null;
  /** ln p of each choice, and whether the model would have written it itself. */
  loglikelihoods: number[];
  isGreedy: boolean[];
  /** By metric: 0 or 1 for accuracies. */
  values: Record<string, number>;
  /** What the model wrote, and the checks that count each for itself. */
  written?: string;
  checks?: number;
  /** Why the item is not counted, in words. */
  refused?: string;
}

export interface MetricValue {
  value: number;
  /** Of the mean; null for a single item. */
  stderr: number | null;
}

export interface TaskScore {
  /** Over the items that are counted. */
  metrics: Record<string, MetricValue>;
  items: TaskItem[];
}

export interface ScoredModel {
  /** In the order of the tasks. */
  tasks: ({ score: TaskScore } | { error: ErrorReport })[];
  /** Tokens run, and the model's own seconds with its share of reading. */
  tokens: number;
  seconds: number;
  engine: BackendKind | null;
  /** How its embeddings or scores are made, in words. */
  embedding?: string;
}

export interface ScoreTasksReport {
  tasks: TaskInfo[];
  /** In the order of the targets. */
  models: ScoredModel[];
  seconds: number;
  bytesRead: number;
  peakBytes: number;
}

/** Progress of scoring: once what the tasks are, then items as they are done. */
export interface TasksProgress extends RunningProgress {
  info?: TaskInfo[];
  items?: { model: number; task: number; item: TaskItem }[];
}
