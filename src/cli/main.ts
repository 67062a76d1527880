/** The headless command: the studio's own jobs in this process, driven from a terminal. */

import { basename, resolve } from 'node:path';
import process from 'node:process';
import { version } from '../../package.json';
import { AmalgamError, errorReport } from '../errors';
import { printableJson, printableText } from '../formats/names';
import { formatBytes } from '../formats/quantity';
import { copyOf, type Recipe } from '../formats/recipe';
import { repositoriesRead } from '../formats/recipe-models';
import { defaultCache } from '../host/node/platform';
import type { DatasetRequest } from '../reports/dataset';
import type { RunningProgress, RunTarget } from '../reports/evaluate';
import type { MergeReport } from '../reports/merge';
import { collapseVerb } from './collapse-verb';
import {
  type Command,
  completionText,
  type EvaluateCommand,
  type GenerateCommand,
  helpText,
  parseCommand,
} from './command';
import type { CommandWorker } from './command-worker';
import { compareVerb, extractLoraVerb } from './compare-verbs';
import { evaluateManyVerb } from './evaluate-many-verb';
import { importanceVerb } from './importance-verb';
import { readInput } from './input-files';
import { type Job, locateModels, openJob, openNode, readRecipe, type Undo } from './job';
import { readMergedMetadata } from './merged-metadata';
import { beginOutputFolder } from './output-folder';
import {
  datasetText,
  elsewhereLines,
  evaluateText,
  mergeText,
  planText,
  problemLines,
  verifyText,
} from './print';
import { progressPrinter } from './progress-printer';
import type { PushOptions } from './push-verb';
import { pushFolder, pushText, pushVerb, requireWriter } from './push-verb';
import { recommendedText } from './recommended-print';
import { checkReportPlace, writeWhole } from './report-file';
import { searchVerb } from './search-verb';
import { taskVerb } from './task-verb';

const EXIT_FAILED = 1;
const EXIT_USAGE = 2;
const EXIT_INTERRUPTED = 130;

const isNpmRun = process.env.npm_lifecycle_event === 'amalgam';

/** `npm run` changes into the project's folder; paths on the command line mean the folder it was called from. */
const workingFolder = (isNpmRun && process.env.INIT_CWD) || process.cwd();

/** The one place where lines leave for the terminal: what files and servers said in them cannot command it. */
const say = (line: string): boolean => process.stderr.write(`${printableText(line)}\n`);

async function plan(command: Command & { verb: 'plan' }, undo: Undo): Promise<number> {
  const file = resolve(workingFolder, command.recipe);
  const recipe = await readRecipe(file);
  const job = await openJob(recipe, file, workingFolder, command, undo, say, repositoriesRead);
  const report = await job.calls.plan(job.recipe);
  const text = command.json ? printableJson(report) : planText(report, recipe.mergeMethod);
  await write(`${text}\n`);
  return report.clean ? 0 : EXIT_FAILED;
}

async function merge(command: Command & { verb: 'merge' }, undo: Undo): Promise<number> {
  const { recipe: read, file, isRecipe } = await recipeOrModel(command.recipe);
  const out = resolve(workingFolder, command.out);
  const reportFile = command.report === undefined ? undefined : resolve(workingFolder, command.report);
  const recipe = { ...read, amalgam: { ...read.amalgam, ...command.form } };
  if (reportFile !== undefined) await checkReportPlace(reportFile);
  const pusher = command.push && (await openPusher(command.push, undo));
  const output = await beginOutputFolder(out, command.resume);
  undo.push(() => output.discard());
  if (command.resume) {
    undo.push(async () => {
      if (output.isCommitted || !(await output.find('journal'))) return;
      say(`What was written is kept in ${output.keep()}: with the same recipe it goes on from there.`);
    });
  }

  const job = await openJob(recipe, file, workingFolder, command, undo, say, repositoriesRead);
  const facts = await job.calls.plan(job.recipe);
  for (const line of [...problemLines(facts.problems), ...(isRecipe ? elsewhereLines(facts) : [])]) say(line);
  if (!facts.clean) {
    say('\nNothing was merged: the recipe does not fit the models.');
    return EXIT_FAILED;
  }
  await output.checkRoom(facts.bytesToWrite);

  const printer = progressPrinter(process.stderr);
  let report: MergeReport;
  try {
    const destination = {
      kind: 'served',
      url: job.server.receiveOutput(output),
      name: basename(out),
    } as const;
    const { engine, resume, recommended } = command;
    report = await job.calls.merge(
      { recipe: job.recipe, engine, destination, resume, ...(recommended && { recommended }) },
      printer.print,
    );
  } finally {
    printer.end();
  }
  if (!output.isCommitted) {
    throw new AmalgamError('Internal', 'The merge ended without an output folder.', 'Please report this.');
  }
  if (reportFile !== undefined) await writeWhole(reportFile, `${JSON.stringify(report, null, 2)}\n`);
  if (report.recommended) say(`${recommendedText(report.recommended)}\n`);
  say(mergeText(report, out));
  if (pusher && command.push) say(pushText(await pushFolder(pusher.calls, out, command.push)));
  return 0;
}

/** A session that can push, once its token was seen to be one that may write. */
async function openPusher({ hub }: PushOptions, undo: Undo): Promise<CommandWorker> {
  const engine = await openNode(defaultCache());
  undo.push(() => engine.close());
  await requireWriter(engine.calls, hub);
  return engine;
}

async function verify(command: Command & { verb: 'verify' }, undo: Undo): Promise<number> {
  const folder = resolve(workingFolder, command.merged);
  const metadata = await readMergedMetadata(folder);
  const { inputs } = metadata;
  const recipe =
    command.recipe === undefined
      ? metadata.recipe
      : await locateModels(metadata.recipe, resolve(workingFolder, command.recipe), workingFolder);
  const job = await openJob(recipe, folder, workingFolder, command, undo, say, repositoriesRead);
  const printer = progressPrinter(process.stderr);
  await job.calls.openServed(folder, (await job.server.serveFolder(folder)).url);
  const request = { merged: folder, recipe: job.recipe, inputs, engine: command.engine };
  const report = await job.calls.verify(request, printer.print).finally(() => printer.end());
  await write(`${verifyText(report)}\n`);
  return report.agrees ? 0 : EXIT_FAILED;
}

/** A recipe where the name is a recipe file, else the recipe of a model as it is; and the file its models are beside. */
async function recipeOrModel(name: string): Promise<{ recipe: Recipe; file: string; isRecipe: boolean }> {
  const file = resolve(workingFolder, name);
  if (/\.ya?ml$/i.test(name)) return { recipe: await readRecipe(file), file, isRecipe: true };
  return { recipe: copyOf(name), file: resolve(workingFolder, 'model'), isRecipe: false };
}

/** Opens what `evaluate` and `generate` run. */
async function openTarget(
  command: EvaluateCommand | GenerateCommand,
  undo: Undo,
): Promise<{ job: Job; target: RunTarget }> {
  const { recipe, file, isRecipe } = await recipeOrModel(command.model);
  const job = await openJob(recipe, file, workingFolder, command, undo, say);
  const target = isRecipe ? { recipe: job.recipe } : { model: job.recipe.models![0]!.model };
  return { job, target };
}

async function evaluate(command: EvaluateCommand, undo: Undo): Promise<number> {
  if (command.others) return evaluateManyVerb(command, { workingFolder, undo, say, write }, recipeOrModel);
  const { window, stride, perToken, engine } = command;
  const reportFile = command.report === undefined ? undefined : resolve(workingFolder, command.report);
  if (reportFile !== undefined) await checkReportPlace(reportFile);
  const given = command.input;
  const local = 'dataset' in given ? undefined : await readInput(given, workingFolder);
  const { job, target } = await openTarget(command, undo);
  const printer = progressPrinter(process.stderr);
  const input =
    'dataset' in given
      ? await readDataset(given.dataset, job, printer.print).finally(() => printer.end())
      : local!;
  const request = { target, input, window, stride, perToken, engine };
  const report = await job.calls.evaluate(request, printer.print).finally(() => printer.end());
  if (reportFile !== undefined) await writeWhole(reportFile, `${JSON.stringify(report, null, 2)}\n`);
  await write(`${evaluateText(report)}\n`);
  return 0;
}

/** Text of a dataset; what was taken of it is said. */
async function readDataset(
  request: DatasetRequest,
  job: Job,
  onProgress: (progress: RunningProgress) => void,
): Promise<{ text: string }> {
  const read = await job.calls.readDataset(request, onProgress);
  say(datasetText(read));
  return { text: read.text };
}

async function generate(command: GenerateCommand, undo: Undo): Promise<number> {
  const { prompt, chat, maxTokens, temperature, topP, seed, engine } = command;
  const reportFile = command.report === undefined ? undefined : resolve(workingFolder, command.report);
  if (reportFile !== undefined) await checkReportPlace(reportFile);
  const { job, target } = await openTarget(command, undo);
  // a file gets what the model wrote, a terminal what can be printed of it
  const shown = (written: string) => (process.stdout.isTTY ? printableText(written) : written);
  process.stdout.write(shown(chat ? `${prompt}\n\n` : prompt));
  const request = { target, prompt, chat, maxTokens, temperature, topP, seed, engine };
  const report = await job.calls.generate(request, ({ text }) => process.stdout.write(shown(text ?? '')));
  await write('\n');
  if (reportFile !== undefined) await writeWhole(reportFile, `${JSON.stringify(report, null, 2)}\n`);
  const rate = `${report.tokensPerSecond.toFixed(1)} tokens/s on ${report.engine}`;
  const peak = `at most ${formatBytes(report.peakBytes)} there`;
  say(`${report.ids.length} tokens, ${rate}, ${peak}${report.ended === 'stop' ? ', the text ended' : ''}`);
  return 0;
}

/** Waits until a pipe has taken it all: the process ends right after. */
async function write(text: string): Promise<void> {
  await new Promise<void>((done, failed) =>
    process.stdout.write(printableText(text), (error) => (error ? failed(error) : done())),
  );
}

async function run(undo: Undo): Promise<number> {
  const command = parseCommand(process.argv.slice(2));
  switch (command.verb) {
    case 'help':
      await write(helpText(command.about));
      return 0;
    case 'version':
      await write(`${version}\n`);
      return 0;
    case 'completion':
      await write(completionText());
      return 0;
    case 'push':
      return pushVerb(command, { workingFolder, undo, say, write });
    case 'plan':
      return plan(command, undo);
    case 'merge':
      return merge(command, undo);
    case 'verify':
      return verify(command, undo);
    case 'evaluate':
      return 'tasks' in command
        ? taskVerb(command, { workingFolder, undo, say, write }, recipeOrModel)
        : evaluate(command, undo);
    case 'generate':
      return generate(command, undo);
    case 'importance':
      return importanceVerb(command, { workingFolder, undo, say, write });
    case 'search':
      return searchVerb(command, { workingFolder, undo, say, write });
    case 'compare':
      return compareVerb(command, { workingFolder, undo, say, write });
    case 'extract-lora':
      return extractLoraVerb(command, { workingFolder, undo, say, write });
    case 'collapse':
      return collapseVerb(command, { workingFolder, undo, say, write });
  }
}

/** Resolves when somebody wants the command to end. A killed npm tells its script nothing: it is just gone. */
async function interruption(): Promise<void> {
  const parent = process.ppid;
  return new Promise((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => resolve());
    if (isNpmRun) setInterval(() => process.ppid !== parent && resolve(), 500).unref();
  });
}

async function main(): Promise<number> {
  const undo: Undo = [];
  const interrupted = interruption().then(() => {
    say('\nInterrupted.');
    return EXIT_INTERRUPTED;
  });
  // threads keep no process alive, so that they cannot keep one that is done; one that waits for them is not done
  const alive = setInterval(() => {}, 60_000);
  try {
    return await Promise.race([run(undo), interrupted]);
  } catch (thrown) {
    const { code, message, hint } = errorReport(thrown);
    say(`${message}\n${hint}`);
    return code === 'Usage' ? EXIT_USAGE : EXIT_FAILED;
  } finally {
    clearInterval(alive);
    for (const act of undo.reverse())
      await act().catch((thrown: unknown) => say(errorReport(thrown).message));
  }
}

process.exit(await main());
