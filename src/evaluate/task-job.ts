/** Tasks scored on several models and merges side by side, as lm-evaluation-harness scores them. */

import type { Datasets } from '../dataset/job';
import { parseRows } from '../dataset/json-lines';
import type { Row } from '../dataset/rows';
import { AmalgamError, errorReport } from '../errors';
import type { RunningProgress } from '../reports/evaluate';
import { defaultsOf, isInRange } from '../reports/option';
import type {
  ScoredModel,
  ScoreTasksReport,
  ScoreTasksRequest,
  TaskInfo,
  TaskItem,
  TasksProgress,
} from '../reports/tasks';
import { aggregate, scoreItem } from '../tasks/metrics';
import { taskOptions } from '../tasks/options';
import { type OpenedTask, openTask } from '../tasks/shipped';
import { type Task, taskInvalid } from '../tasks/task-file';
import type { Item, TaskRows } from '../tasks/task-items';
import { encodePairs, encodeRolling, harnessMaxLength, type PairIds } from './encoded-pairs';
import { buildItemsGuarded, type GuardedTokenizer } from './foreign-text';
import type { GroupedPasses } from './grouped-passes';
import { itemRows, startScoring } from './log-likelihood';
import type { RunningModel } from './running-model';
import { type Entry, runSideBySide, type SideBySideOptions, tokenizerKey } from './side-by-side';

/** The harness's seed for examples. */
/** Rows that a trial runs. */
const TRIAL_ROWS = 256;

export interface ScoreTasksOptions extends SideBySideOptions {
  rows: Datasets['rows'];
  onProgress(progress: TasksProgress): void;
}

/** A task with its items. */
interface ReadTask {
  task: Task;
  info: TaskInfo;
  items: Item[];
}

/** An item of one of the tasks, encoded: its pairs, or why they cannot be scored. */
interface Encoded {
  task: number;
  item: Item;
  pairs: PairIds[];
  refused?: string;
}

/**
 * Scores every task on every target: first the rows of all tasks are read and asked, then the models. A target that cannot
 * be run is an error in its place; the others go on.
 * @throws AmalgamError `TaskInvalid`, `SplitMissing`, `ColumnMissing` and what reading rows throws, all before a model is
 *   read; `NoWebGpu`, `Cancelled`, `Usage`
 */
export async function runTasks(
  request: ScoreTasksRequest,
  options: ScoreTasksOptions,
): Promise<ScoreTasksReport> {
  checkRequest(request);
  const tasks: ReadTask[] = [];
  for (const source of request.tasks) tasks.push(await readTask(openTask(source), request, options));
  const info = tasks.map((read) => read.info);
  const targets = request.trial ? request.targets.slice(0, 1) : request.targets;
  const models = targets.map((): ScoredModel => ({ tasks: [], tokens: 0, seconds: 0, engine: null }));
  const scored = targets.map(() => tasks.map((): TaskItem[] => []));
  const encoded = new Map<string, Encoded[]>();
  let wholeTokens = 0;
  let fresh: NonNullable<TasksProgress['items']> = [];
  const tell = (progress: RunningProgress) => {
    options.onProgress({ ...progress, ...(fresh.length > 0 ? { items: fresh } : {}) });
    fresh = [];
  };
  options.onProgress({ phase: 'preparing', done: 0, total: 0, rate: 0, secondsLeft: null, facts: info });

  const begin = async (entry: Entry, model: RunningModel): Promise<GroupedPasses> => {
    const { index, config, architecture } = entry;
    const tokenizer = await model.tokenizer();
    const most = harnessMaxLength(config.raw, tokenizer.maxLength);
    const maxLength = Math.min(most, architecture.maxPositions ?? most);
    const key = `${maxLength} ${tokenizerKey(entry)}`;
    const all = encoded.get(key) ?? (await encodeItems(tasks, tokenizer, maxLength));
    encoded.set(key, all);
    const add = ({ task }: Encoded, item: TaskItem) => {
      scored[index]![task]!.push(item);
      fresh.push({ model: index, task, item });
    };
    for (const one of all) if (one.refused !== undefined) add(one, refusedItem(one.item, one.refused));
    const runnable = all.filter(({ refused }) => refused === undefined);
    const rows = runnable.map(({ pairs }) => itemRows(model.runner, pairs, maxLength));
    models[index]!.tokens = rows.reduce((a, b) => a + b, 0);
    models[index]!.engine = model.runner.engine.kind;
    if (index === 0) wholeTokens = models[0]!.tokens;
    const chosen = request.trial ? runnable.slice(0, trialItems(rows)) : runnable;
    return startScoring(
      model.runner,
      chosen.map(({ pairs }) => pairs),
      {
        maxLength,
        share: true,
        signal: options.signal,
        onItem(i, answers) {
          const one = chosen[i]!;
          const { task } = tasks[one.task]!;
          const rolling = !Array.isArray(one.item.requests);
          const sum = answers.reduce((total, a) => total + a.loglikelihood, 0);
          const own = rolling
            ? [{ loglikelihood: sum, isGreedy: answers.every((a) => a.isGreedy) }]
            : answers;
          add(one, scoreItem(task, one.item, own));
        },
      },
    );
  };
  const report = await runSideBySide<GroupedPasses>(
    {
      targets,
      engine: request.engine,
      tokens: mostTokens(tasks),
      begin,
      end({ index }, scoring, seconds) {
        const { tokens } = scoring.progress;
        Object.assign(models[index]!, { tokens, seconds });
        models[index]!.tasks = tasks.map(({ task }, t) => {
          const items = scored[index]![t]!.sort((a, b) => a.docId - b.docId);
          return { score: { metrics: aggregate(task.metrics, items), items } };
        });
      },
      fail(index, thrown) {
        models[index]!.tasks = tasks.map(() => ({ error: errorReport(thrown) }));
      },
      onProgress: tell,
    },
    options,
  );
  const { seconds, bytesRead, peakBytes } = report;
  return { tasks: info, models, tokens: wholeTokens, seconds, bytesRead, peakBytes };
}

function checkRequest({ targets, tasks, limit, fewshot }: ScoreTasksRequest): void {
  const refuse = (message: string, hint: string) => {
    throw new AmalgamError('Usage', message, hint);
  };
  if (targets.length === 0 || tasks.length === 0) {
    refuse('There is nothing to score.', 'Name a model and a task at least.');
  }
  if (limit !== null && !isInRange(taskOptions.limit, limit)) {
    refuse(`A limit of ${limit} items is not valid.`, 'Choose a whole number from 1.');
  }
  if (fewshot !== null && !isInRange(taskOptions.fewshot, fewshot)) {
    refuse(`${fewshot} examples cannot be given.`, 'Choose a whole number from 0.');
  }
}

/** Rows of a task's splits, and its items. */
async function readTask(
  opened: OpenedTask,
  request: ScoreTasksRequest,
  { rows, signal, onProgress }: ScoreTasksOptions,
): Promise<ReadTask> {
  const { task, lines } = opened;
  const { limit, sampleSeed, fewshotSeed } = { ...defaultsOf(taskOptions), ...request };
  const fewshot = request.fewshot ?? task.fewshot ?? 0;
  const split = task.test ?? task.validation;
  if (split === null) throw taskInvalid(task.name, 'it names neither a test nor a validation split');
  const exampleSplit = task.fewshotSplit ?? task.training ?? task.validation ?? split;
  let dataset: string | null = null;
  const read = async (name: string): Promise<Row[]> => {
    if (lines) return lineRows(lines);
    if (!('dataset' in task.data)) throw taskInvalid(task.name, `its rows are in ${task.data.file}`);
    const found = await rows({ ...task.data, split: name }, signal, onProgress);
    dataset = found.ref;
    return found.rows;
  };
  const own = await read(split);
  const examples = fewshot === 0 ? [] : exampleSplit === split ? own : await read(exampleSplit);
  const source: TaskRows = {
    rows: own,
    examples,
    name: lines?.name ?? `The split “${split}” of ${dataset}`,
  };
  const settings = { limit, sampleSeed: sampleSeed ?? null, fewshot, fewshotSeed };
  const items = await buildItemsGuarded(task, source, settings);
  const { name, version, outputType, metrics } = task;
  return {
    task,
    items,
    info: {
      ...{ task: name, version, outputType, dataset, metrics, fewshot },
      subset: 'dataset' in task.data ? task.data.subset : null,
      split: lines ? null : split,
      original: own.length,
      effective: items.length,
      sampleSeed: items.length < own.length ? (sampleSeed ?? null) : null,
    },
  };
}

async function lineRows({ name, text }: { name: string; text: string }): Promise<Row[]> {
  const rows: Row[] = [];
  async function* whole() {
    yield text;
  }
  for await (const { fields } of parseRows(whole(), name)) rows.push(fields as Row);
  return rows;
}

async function encodeItems(
  tasks: readonly ReadTask[],
  tokenizer: GuardedTokenizer,
  maxLength: number,
): Promise<Encoded[]> {
  const all = tasks.flatMap(({ items }, task) => items.map((item) => ({ task, item })));
  const requests = all.map(({ item }) => (Array.isArray(item.requests) ? item.requests : []));
  const pairs = await encodePairs(tokenizer, requests.flat(), maxLength);
  const encoded: Encoded[] = [];
  for (const [i, one] of all.entries()) {
    const { requests: asked } = one.item;
    const own = pairs.splice(0, requests[i]!.length);
    const made = Array.isArray(asked) ? own : await encodeRolling(tokenizer, asked.text, maxLength);
    const refused = 'refused' in made ? made : made.find((pair) => 'refused' in pair);
    const kept = 'refused' in made ? [] : (made as PairIds[]);
    encoded.push({ ...one, pairs: kept, ...(refused && 'refused' in refused ? refused : {}) });
  }
  return encoded;
}

function refusedItem({ docId, target }: Item, refused: string): TaskItem {
  return { docId, target, loglikelihoods: [], isGreedy: [], values: {}, refused };
}

/** Items whose rows are a trial: enough that a layer's weights are not most of it. */
function trialItems(rows: readonly number[]): number {
  let sum = 0;
  const last = rows.findIndex((own) => {
    sum += own;
    return sum >= TRIAL_ROWS;
  });
  return last < 0 ? rows.length : last + 1;
}

/** A character is one token at most. */
function mostTokens(tasks: readonly ReadTask[]): number {
  const length = ({ requests }: Item): number => {
    if (!Array.isArray(requests)) return requests.text.length;
    const contexts = new Set(requests.map(({ context }) => context));
    const all = [...contexts, ...requests.map(({ continuation }) => continuation)];
    return all.reduce((sum, text) => sum + text.length, 0);
  };
  return tasks.reduce((sum, { items }) => items.reduce((own, item) => own + length(item), sum), 0);
}
