/** Tasks with their rows read and asked: what every way of scoring them begins with. */
import { type Datasets, requireColumns } from '../dataset/job';
import { parseRows } from '../dataset/json-lines';
import type { Row } from '../foreign/parquet';
import { defaultsOf } from '../reports/option';
import type { ScoreTasksRequest, TaskInfo, TaskItem, TasksProgress } from '../reports/tasks';
import { taskOptions } from '../tasks/options';
import type { Task } from '../tasks/task';
import { buildItems, type Item } from '../tasks/task-items';
import type { SideBySideOptions } from './side-by-side';

export interface ScoreTasksOptions extends SideBySideOptions {
  rows: Datasets['rows'];
  onProgress(progress: TasksProgress): void;
}

/** A task with its items. */
export interface ReadTask {
  task: Task;
  info: TaskInfo;
  items: Item[];
}

export const isOfEmbeddings = ({ outputType }: Task): boolean =>
  outputType === 'similarity' || outputType === 'retrieval';

export const isWritten = ({ outputType }: Task): boolean => outputType === 'generate_until';

/** Rows of a task's splits, and its items. */
export async function readTask(
  task: Task,
  request: ScoreTasksRequest,
  { rows, signal, onProgress }: ScoreTasksOptions,
): Promise<ReadTask> {
  const { limit, sampleSeed, fewshotSeed } = { ...defaultsOf(taskOptions), ...request };
  const { name, version, outputType, metrics, data, columns } = task;
  const fewshot = isOfEmbeddings(task) ? 0 : (request.fewshot ?? 0);
  const split = (task.test ?? task.validation)!;
  const exampleSplit = task.fewshotSplit ?? task.training ?? task.validation ?? split;
  let dataset: string | null = null;
  const read = async (part: string): Promise<Row[]> => {
    if ('lines' in data) return ownRows(data.name, data.lines, columns);
    const found = await rows({ ...data, split: part, columns }, signal, onProgress);
    dataset = found.ref;
    return found.rows;
  };
  const own = await read(split);
  const examples = fewshot === 0 ? [] : exampleSplit === split ? own : await read(exampleSplit);
  const source = {
    rows: own,
    examples,
    name: 'lines' in data ? data.name : `the split “${split}” of ${dataset}`,
  };
  const items = buildItems(task, source, { limit, sampleSeed: sampleSeed ?? null, fewshot, fewshotSeed });
  return {
    task,
    items,
    info: {
      ...{ task: name, version, outputType, dataset, metrics, fewshot },
      subset: 'dataset' in data ? data.subset : null,
      split: 'dataset' in data ? split : null,
      original: own.length,
      effective: items.length,
      sampleSeed: items.length < own.length ? (sampleSeed ?? null) : null,
    },
  };
}

/** Rows of a text, the first of which marks it as a task's. */
async function ownRows(name: string, lines: string, columns: readonly string[]): Promise<Row[]> {
  const rows: Row[] = [];
  for await (const row of parseRows([lines], name)) rows.push(row);
  if (rows[0]) requireColumns(name, columns, Object.keys(rows[0]));
  return rows;
}

/** An item that cannot be asked, and why. */
export function refusedItem({ docId, target }: Item, refused: string): TaskItem {
  return { docId, target, loglikelihoods: [], isGreedy: [], values: {}, refused };
}

/** A character is one token at most. */
export function mostTokens(tasks: readonly ReadTask[]): number {
  const length = ({ requests }: Item): number => {
    const contexts = new Set(requests.map(({ context }) => context));
    const all = [...contexts, ...requests.map(({ continuation }) => continuation)];
    return all.reduce((sum, text) => sum + text.length, 0);
  };
  return tasks.reduce((sum, { items }) => items.reduce((own, item) => own + length(item), sum), 0);
}
