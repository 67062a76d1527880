/** The part of the fake worker that scores tasks: every model gets the items right that its name says. */
import type {
  ScoreTasksReport,
  ScoreTasksRequest,
  ShippedTask,
  TaskInfo,
  TaskItem,
  TasksProgress,
} from '../reports/tasks';
import { aggregate } from '../tasks/metrics';
import type { RunningFixtureOptions, Step } from './worker-running.test.fixture';

export const fixtureTasks: ShippedTask[] = [
  { name: 'sample_trades', title: 'Sample trades', dataset: null, metrics: ['acc', 'acc_norm'], subsets: [] },
  {
    name: 'hellaswag',
    title: 'HellaSwag',
    dataset: 'Rowan/hellaswag',
    metrics: ['acc', 'acc_norm'],
    subsets: [],
  },
  { name: 'mmlu', title: 'MMLU', dataset: 'cais/mmlu', metrics: ['acc'], subsets: ['anatomy', 'virology'] },
];

/** Items of a task. */
const ITEMS = 48;

export async function pretendScores(
  request: ScoreTasksRequest,
  _: RunningFixtureOptions,
  onProgress: (progress: TasksProgress) => void,
  step: Step,
): Promise<ScoreTasksReport> {
  const effective = Math.min(ITEMS, request.limit ?? ITEMS);
  const info = request.tasks.map(
    (source): TaskInfo => ({
      task: 'name' in source ? source.name : source.file.name,
      version: 1,
      outputType: 'multiple_choice',
      dataset: null,
      subset: null,
      split: null,
      metrics: ['acc', 'acc_norm'],
      fewshot: request.fewshot ?? 0,
      original: ITEMS,
      effective,
      sampleSeed: request.sampleSeed ?? null,
    }),
  );
  const { targets } = request;
  const total = effective * info.length * targets.length * 120;
  const tell = (done: number, more: Partial<TasksProgress>) =>
    onProgress({ phase: 'running', done, total, rate: 3000, secondsLeft: (total - done) / 3000, ...more });
  tell(0, { info });
  const items = targets.map(() => info.map((): TaskItem[] => []));
  for (let docId = 0; docId < effective; docId++) {
    await step(docId);
    const fresh = targets.flatMap((_, model) =>
      info.map((__, task) => ({ model, task, item: answer(docId, model) })),
    );
    for (const { model, task, item } of fresh) items[model]![task]!.push(item);
    tell(((docId + 1) * total) / effective, { items: fresh });
  }
  const tokens = total / targets.length;
  const score = (own: TaskItem[]) => ({
    score: { metrics: aggregate(['acc', 'acc_norm'], own), items: own },
  });
  return {
    tasks: info,
    models: items.map((own) => ({ tasks: own.map(score), tokens, seconds: tokens / 3000, engine: 'cpu' })),
    seconds: total / 3000,
    bytesRead: 7_440_000,
    peakBytes: 34_500_000,
  };
}

/** Model m is wrong at every (m + 2)-th item. */
function answer(docId: number, model: number): TaskItem {
  const acc = docId % (model + 2) === 0 ? 0 : 1;
  const values = { acc, acc_norm: docId % 3 === 0 ? 0 : 1 };
  return { docId, target: 0, loglikelihoods: [-1, -2], isGreedy: [false, false], values };
}
