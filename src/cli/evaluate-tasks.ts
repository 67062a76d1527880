/** The form of `evaluate` that scores tasks: opens all models in one engine, scores them side by side, prints a table and the tests. */
import { readFile } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { withResults } from '../formats/card-results';
import { HASHES_FILE, withOutputHash } from '../formats/output-hashes';
import type { BackendChoice } from '../reports/backend';
import type { Options } from '../reports/option';
import type { ScoreTasksReport, TaskSource } from '../reports/tasks';
import { bufferSource } from '../sources/buffer-source';
import { treeOf } from '../sources/tree-hash';
import { cardResult, comparisons, harnessResults } from '../tasks/harness-report';
import { taskOptions } from '../tasks/options';
import { engineOptions, parseSome, runOf, runOptions, usage, usageOf } from './arguments';
import { scoresText } from './evaluate-print';
import { readTextFile } from './input-files';
import type { Where } from './job';
import { withProgress } from './progress-printer';
import { reportWriter, writeWhole } from './report-file';
import { openTargets } from './targets';
import { itemsOf, taskSource } from './task-source';
import type { Place } from './verb';

/** Paths are as typed. */
export interface TaskCommand extends Where, ReturnType<typeof itemsOf> {
  /** Model references, or paths of recipes whose merges are scored without being written. */
  models: string[];
  /** Names of tasks that ship, or paths of files of rows. */
  tasks: string[];
  fewshotSeed: number;
  engine: BackendChoice;
  report?: string;
  /** README.md of the first model, to say what it scored. */
  card?: string;
}

const cardOptions = {
  report: runOptions.report,
  card: { kind: 'text', argument: 'README.md', help: 'A model card that takes what the first model scored.' },
} as const;

export const scoringOptions = {
  task: { kind: 'list', argument: 'NAME', help: 'Tasks that ship, or files of rows.' },
  ...{ ...taskOptions, ...cardOptions, ...runOptions },
} as const satisfies Options;

export const TASK_USAGE = `  evaluate <model> … --task NAME[,NAME …] [--limit N [--sample-seed S]] ${usageOf(taskOptions, 'fewshot', 'fewshotSeed')}
           ${usageOf(cardOptions)} ${usageOf(engineOptions)}
      Accuracy on tasks as lm-evaluation-harness scores them, of one or more models and recipes; with several, whether
      each is better than the first (paired test). NAME is hellaswag, arc_easy, arc_challenge, piqa, winogrande, boolq,
      openbookqa, lambada_openai, mmlu_<subset>, truthfulqa_mc1, truthfulqa_mc2, sample_trades, or a .jsonl of your own with
      question, choices and answer. --limit takes the first items, or some drawn by --sample-seed.
      --card puts the first model's results into the front matter of its model card (model-index).
`;

/** @throws Usage */
export function parseTasks(args: string[]): TaskCommand {
  const { subjects: models, options } = parseSome('evaluate', 'model', args, scoringOptions);
  const { task: tasks, card, fewshotSeed } = options;
  if (tasks.length === 0) throw usage('--task is empty; it names a task such as hellaswag.');
  return {
    ...{ models, tasks, ...itemsOf(options), fewshotSeed },
    ...runOf(options),
    ...(card === undefined ? {} : { card }),
  };
}

export async function runTasks(command: TaskCommand, place: Place): Promise<number> {
  const { workingFolder, say, write } = place;
  const writeReport = await reportWriter(command.report, workingFolder);
  const card = command.card === undefined ? undefined : resolve(workingFolder, command.card);
  if (card !== undefined) await readTextFile(card, workingFolder);
  const tasks: TaskSource[] = [];
  for (const name of command.tasks) tasks.push(await taskSource(name, workingFolder));
  const { calls, targets } = await openTargets(command.models, place, command);
  const { limit, fewshot, engine, sampleSeed, fewshotSeed } = command;
  const seeds = { ...(sampleSeed === undefined ? {} : { sampleSeed }), fewshotSeed };
  const report = await withProgress((print) =>
    calls.scoreTasks({ targets, tasks, limit, fewshot, engine, ...seeds }, print),
  );
  await writeReport({
    config: { limit, fewshot_seed: fewshotSeed, sample_seed: sampleSeed ?? null, engine },
    datasets: datasetsOf(report),
    models: report.models.map((model, i) => harnessResults(command.models[i]!, model, report.tasks)),
    comparisons: comparisons(report).map(({ a, b, ...test }) => ({
      a: command.models[a],
      b: command.models[b],
      ...test,
    })),
  });
  if (card !== undefined) await writeCard(card, report, workingFolder);
  await write(`${scoresText(report, command.models)}\n`);
  const failed = report.models.some((model) => model.tasks.some((outcome) => 'error' in outcome));
  if (failed) say('A model could not be scored: see the table.');
  return failed ? 1 : 0;
}

/** Puts what the first model scored into its card, and the card's new hash into the file of hashes beside it. */
async function writeCard(card: string, report: ScoreTasksReport, workingFolder: string): Promise<void> {
  const results = report.tasks.flatMap((info, t) => {
    const outcome = report.models[0]?.tasks[t];
    return outcome && 'score' in outcome ? [cardResult(info, outcome.score)] : [];
  });
  const text = withResults(await readTextFile(card, workingFolder), basename(dirname(card)), results);
  await writeWhole(card, text);
  const hashes = join(dirname(card), HASHES_FILE);
  const found = await readFile(hashes, 'utf8').catch(() => undefined);
  if (found === undefined) return;
  const hash = await treeOf(bufferSource(new TextEncoder().encode(text), card));
  await writeWhole(hashes, withOutputHash(found, basename(card), hash));
}

const datasetsOf = ({ tasks }: ScoreTasksReport) =>
  Object.fromEntries(tasks.map(({ task, dataset, split }) => [task, { dataset, split }]));
