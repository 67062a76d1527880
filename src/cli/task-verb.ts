/** What `evaluate --task` does: opens all models in one engine, scores them side by side, prints a table and the tests. */
import { readFile } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import process from 'node:process';
import { AmalgamError } from '../errors';
import { withResults } from '../formats/card-results';
import { HASHES_FILE, withOutputHash } from '../formats/output-hashes';
import { copyOf, type Recipe } from '../formats/recipe';
import { recipeRepositories, renameRepositories } from '../formats/recipe-models';
import type { RunTarget } from '../reports/evaluate';
import type { ScoreTasksReport, TaskSource } from '../reports/tasks';
import { bufferSource } from '../sources/buffer-source';
import { treeOf } from '../sources/tree-hash';
import { cardResult, comparisons, harnessResults } from '../tasks/harness-report';
import type { Place } from './compare-verbs';
import { readTextFile } from './input-files';
import { openJob } from './job';
import { lookUpModels } from './model-lookup';
import { columns } from './print';
import { progressPrinter } from './progress-printer';
import { readCalibrationTexts } from './recipe-texts';
import { checkReportPlace, writeWhole } from './report-file';
import type { TaskCommand } from './task-command';
import { taskSource } from './task-source';

export type Read = (name: string) => Promise<{ recipe: Recipe; file: string; isRecipe: boolean }>;

export async function taskVerb(command: TaskCommand, place: Place, read: Read): Promise<number> {
  const { workingFolder, say, write } = place;
  const reportFile = command.report === undefined ? undefined : resolve(workingFolder, command.report);
  if (reportFile !== undefined) await checkReportPlace(reportFile);
  const card = command.card === undefined ? undefined : resolve(workingFolder, command.card);
  if (card !== undefined) await readTextFile(card, workingFolder);
  const tasks: TaskSource[] = [];
  for (const name of command.tasks) tasks.push(await taskSource(name, workingFolder));
  const { calls, targets } = await openTargets(command, place, read);
  const { limit, fewshot, engine, sampleSeed, fewshotSeed } = command;
  const seeds = {
    ...(sampleSeed === undefined ? {} : { sampleSeed }),
    ...(fewshotSeed === undefined ? {} : { fewshotSeed }),
  };
  const printer = progressPrinter(process.stderr);
  const report = await calls
    .scoreTasks({ targets, tasks, limit, fewshot, engine, ...seeds }, printer.print)
    .finally(() => printer.end());
  if (reportFile !== undefined) {
    const models = report.models.map((model, i) => harnessResults(command.models[i]!, model, report.tasks));
    const config = { limit, fewshot_seed: fewshotSeed ?? 1234, sample_seed: sampleSeed ?? null, engine };
    const compared = comparisons(report).map(({ a, b, ...test }) => ({
      a: command.models[a],
      b: command.models[b],
      ...test,
    }));
    const whole = { config, datasets: datasetsOf(report), models, comparisons: compared };
    await writeWhole(reportFile, `${JSON.stringify(whole, null, 2)}\n`);
  }
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

/** Opens every model of all subjects in one engine. */
export async function openTargets(
  command: Pick<TaskCommand, 'models' | 'hub' | 'cache' | 'engine'>,
  { workingFolder, undo, say }: Place,
  read: Read,
) {
  const subjects = [];
  for (const name of command.models) {
    const { recipe, file, isRecipe } = await read(name);
    const places = [dirname(file), workingFolder];
    const found = await lookUpModels(recipeRepositories(recipe), places);
    // folders by their whole paths: each subject's models are beside it
    const whole = new Map(found.map((one) => [one.name, one.folder ?? one.name]));
    const texts = await readCalibrationTexts(recipe, places);
    subjects.push({ recipe: renameRepositories(recipe, whole), isRecipe, texts });
  }
  const all = [...new Set(subjects.flatMap(({ recipe }) => recipeRepositories(recipe)))];
  const job = await openJob(
    copyOf(...all),
    resolve(workingFolder, 'models'),
    workingFolder,
    command,
    undo,
    say,
  );
  const opened = job.recipe.models;
  if (opened?.length !== all.length) {
    throw new AmalgamError('Internal', 'A model was opened under another name.', 'Please report this.');
  }
  const refs = new Map(all.map((name, i) => [name, opened[i]!.model]));
  for (const { texts } of subjects) {
    for (const { name, text } of texts) await job.calls.addCalibrationText(name, text);
  }
  const targets = subjects.map(({ recipe, isRecipe }): RunTarget => {
    const renamed = renameRepositories(recipe, refs);
    return isRecipe ? { recipe: renamed } : { model: renamed.models![0]!.model };
  });
  return { calls: job.calls, targets };
}

/** A line for each model, task and metric, and one for each comparison with the first model. */
export function scoresText(report: ScoreTasksReport, names: readonly string[]): string {
  const rows = report.models.flatMap((model, m) =>
    report.tasks.flatMap(({ task, fewshot, effective }, t) => {
      const outcome = model.tasks[t];
      const head = [names[m]!, task, `${fewshot}`];
      if (!outcome || 'error' in outcome)
        return [[...head, outcome?.error.message ?? 'not scored', '', '', '']];
      const refused = outcome.score.items.filter((item) => item.refused !== undefined).length;
      const items = refused > 0 ? `${effective - refused} (${refused} refused)` : `${effective}`;
      return Object.entries(outcome.score.metrics).map(([metric, { value, stderr }]) => [
        ...head,
        metric,
        value.toFixed(4),
        stderr === null ? '' : `± ${stderr.toFixed(4)}`,
        items,
      ]);
    }),
  );
  const times = report.models.map(
    ({ tokens, seconds }, m) =>
      `${names[m]}: ${tokens} tokens in ${seconds.toFixed(1)} s${seconds > 0 ? `, ${Math.round(tokens / seconds)} tokens/s` : ''}`,
  );
  const tests = comparisons(report).map(
    ({ task, metric, a, b, difference, onlyA, onlyB, items, p, test }) =>
      `${names[b]} against ${names[a]} on ${task}, ${metric}: ${difference >= 0 ? '+' : ''}${difference.toFixed(4)}` +
      (test === 'mcnemar'
        ? `; right in ${names[b]} alone: ${onlyB}, in ${names[a]} alone: ${onlyA} of the items (McNemar’s exact test`
        : ` over ${items} items (paired bootstrap`) +
      `, p = ${p.toPrecision(3)})`,
  );
  const table = columns([['model', 'task', 'shots', 'metric', 'value', 'stderr', 'items'], ...rows]);
  return [...table, '', ...times, ...(tests.length > 0 ? ['', ...tests] : [])].join('\n');
}
