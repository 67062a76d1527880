/** Tasks scored on several models and merges side by side, as lm-evaluation-harness scores them. */

import { AmalgamError, errorReport } from '../errors';
import type { GuardedTokenizer } from '../foreign/foreign-text';
import { counted } from '../formats/quantity';
import type { RunningProgress } from '../reports/evaluate';
import { isInRange } from '../reports/option';
import type {
  ScoredModel,
  ScoreTasksReport,
  ScoreTasksRequest,
  TaskItem,
  TasksProgress,
} from '../reports/tasks';
import { aggregate, scoreItem } from '../tasks/metrics';
import { taskOptions } from '../tasks/options';
import { openTask } from '../tasks/shipped';
import type { Item } from '../tasks/task-items';
import { encodePairs, harnessMaxLength, type PairIds } from './encoded-pairs';
import type { GroupedPasses } from './grouped-passes';
import { startScoring } from './log-likelihood';
import type { RunningModel } from './running-model';
import { type Entry, runSideBySide, tokenizerKey } from './side-by-side';
import {
  isOfEmbeddings,
  isWritten,
  mostTokens,
  type ReadTask,
  readTask,
  refusedItem,
  type ScoreTasksOptions,
} from './task-rows';

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
 *   read; `NoWebGpu`, `Canceled`, `Usage`
 */
export async function runTasks(
  request: ScoreTasksRequest,
  options: ScoreTasksOptions,
): Promise<ScoreTasksReport> {
  checkRequest(request);
  const tasks: ReadTask[] = [];
  for (const source of request.tasks) tasks.push(await readTask(openTask(source), request, options));
  const embedding = tasks.filter(({ task }) => isOfEmbeddings(task));
  if (embedding.length > 0 && embedding.length < tasks.length) throw mixed(embedding[0]!.task.name);
  const info = tasks.map((read) => read.info);
  const { targets } = request;
  const models = targets.map((): ScoredModel => ({ tasks: [], tokens: 0, seconds: 0, engine: null }));
  const scored = targets.map(() => tasks.map((): TaskItem[] => []));
  const encoded = new Map<string, Encoded[]>();
  let fresh: NonNullable<TasksProgress['items']> = [];
  const tell = (progress: RunningProgress) => {
    options.onProgress({ ...progress, ...(fresh.length > 0 ? { items: fresh } : {}) });
    fresh = [];
  };
  options.onProgress({ phase: 'preparing', done: 0, total: 0, rate: 0, secondsLeft: null, info });
  if (embedding.length === tasks.length)
    return (await import('./embedding-job')).scoreEmbeddings(request, tasks, options);

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
    models[index]!.engine = model.runner.engine.kind;
    return startScoring(
      model.runner,
      runnable.map(({ pairs }) => pairs),
      {
        maxLength,
        share: true,
        signal: options.signal,
        onItem(i, answers) {
          const one = runnable[i]!;
          const { task } = tasks[one.task]!;
          add(one, scoreItem(task, one.item, answers));
        },
      },
    );
  };
  const read = tasks.filter(({ task }) => !isWritten(task));
  const report = await runSideBySide<GroupedPasses>(
    {
      targets: read.length > 0 ? targets : [],
      engine: request.engine,
      tokens: mostTokens(read),
      begin,
      end({ index }, scoring, seconds) {
        const { tokens } = scoring.progress;
        Object.assign(models[index]!, { tokens, seconds });
        models[index]!.tasks = scoresOf(tasks, scored[index]!);
      },
      fail(index, thrown) {
        models[index]!.tasks = tasks.map(() => ({ error: errorReport(thrown) }));
      },
      onProgress: tell,
    },
    options,
  );
  if (read.length < tasks.length) {
    const { writeAnswers } = await import('./written-answers');
    await writeAnswers(request, tasks, options, {
      onItems(index, task, items) {
        scored[index]![task]!.push(...items);
        fresh.push(...items.map((item) => ({ model: index, task, item })));
      },
      onProgress: tell,
      end(index, { tokens, seconds, engine }) {
        const model = models[index]!;
        Object.assign(model, { tokens: model.tokens + tokens, seconds: model.seconds + seconds, engine });
        const made = scoresOf(tasks, scored[index]!);
        model.tasks = tasks.map(({ task }, t) => (isWritten(task) ? made[t]! : (model.tasks[t] ?? made[t]!)));
      },
      fail(index, thrown) {
        const error = errorReport(thrown);
        const model = models[index]!;
        model.tasks = tasks.map(({ task }, t) =>
          isWritten(task) ? { error } : (model.tasks[t] ?? { error }),
        );
      },
    });
  }
  const { bytesRead, peakBytes } = report;
  const seconds = models.reduce((sum, own) => sum + own.seconds, 0);
  return { tasks: info, models, seconds: Math.max(seconds, report.seconds), bytesRead, peakBytes };
}

const scoresOf = (tasks: readonly ReadTask[], scored: readonly TaskItem[][]): ScoredModel['tasks'] =>
  tasks.map(({ task }, t) => {
    const items = scored[t]!.sort((a, b) => a.docId - b.docId);
    const why = items.length > 0 && items.every(({ refused }) => refused !== undefined) && items[0]!.refused;
    if (why) {
      const message = `No row of ${task.name} could be asked of this model: ${why}`;
      return {
        error: errorReport(new AmalgamError('TaskInvalid', message, 'Choose other rows, or another model.')),
      };
    }
    return { score: { metrics: aggregate(task.metrics, items), items } };
  });

const mixed = (name: string) =>
  new AmalgamError(
    'Usage',
    `${name} is of embeddings, and other tasks are of what is written.`,
    'Choose the ones or the others.',
  );

function checkRequest({ targets, tasks, limit, fewshot }: ScoreTasksRequest): void {
  const refuse = (message: string, hint: string) => {
    throw new AmalgamError('Usage', message, hint);
  };
  if (targets.length === 0 || tasks.length === 0) {
    refuse('There is nothing to score.', 'Name a model and a task at least.');
  }
  if (limit !== null && !isInRange(taskOptions.limit, limit)) {
    refuse(`A limit of ${counted(limit, 'item')} is not valid.`, 'Choose a whole number from 1.');
  }
  if (fewshot !== null && !isInRange(taskOptions.fewshot, fewshot)) {
    refuse(`${counted(fewshot, 'example')} cannot be given.`, 'Choose a whole number from 0.');
  }
}

async function encodeItems(
  tasks: readonly ReadTask[],
  tokenizer: GuardedTokenizer,
  maxLength: number,
): Promise<Encoded[]> {
  const all = tasks.flatMap(({ task: { outputType }, items }, task) =>
    outputType === 'generate_until' ? [] : items.map((item) => ({ task, item })),
  );
  const encoded = await encodePairs(
    tokenizer,
    all.flatMap(({ item }) => item.requests),
    maxLength,
  );
  return all.map((one) => {
    const own = encoded.splice(0, one.item.requests.length);
    const wrong = own.find((pair) => 'refused' in pair);
    const refused = one.item.refused ?? (wrong && 'refused' in wrong ? wrong.refused : undefined);
    return refused === undefined ? { ...one, pairs: own as PairIds[] } : { ...one, pairs: [], refused };
  });
}
