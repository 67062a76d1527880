import { basename, dirname, resolve } from 'node:path';
import { fromErrorReport } from '../../errors';
import { datasetOptions, evaluateOptions } from '../../evaluate/options';
import { cardWithResults } from '../../formats/card-results';
import { counted, formatSeconds } from '../../formats/quantity';
import type { DatasetRequest } from '../../reports/dataset';
import type { EvaluateManyReport, RunningProgress } from '../../reports/evaluate';
import type { Options } from '../../reports/option';
import { pairedDifference, verdict } from '../../reports/paired-error';
import type { ScoreTasksReport, TaskSource } from '../../reports/tasks';
import { cardResult, comparisons, harnessResults } from '../../tasks/harness-report';
import { taskOptions } from '../../tasks/options';
import { taskNames } from '../../tasks/shipped';
import type { WorkerCalls } from '../../worker/calls';
import { type Arguments, defineVerb, type Place, runOptions, usage } from '../arguments';
import { changeCard, itemsOf, readInput, readTextFile, taskSource } from '../input-files';
import { openTargets } from '../job';
import {
  alikeWords,
  columns,
  datasetText,
  errorText,
  errorWords,
  evaluateText,
  withProgress,
} from '../print';
import { reportWriter } from '../report-file';

const oneInput = { either: 'input', needed: true } as const;

const options = {
  text: { kind: 'text', argument: 'FILE', help: 'A text to measure on.', ...oneInput },
  tokens: { kind: 'text', argument: 'IDS.json', help: 'A text as token ids.', ...oneInput },
  dataset: {
    kind: 'text',
    argument: 'owner/name[@rev]:path[:column]',
    help: 'A file of a dataset on the Hub, and its column.',
    ...oneInput,
  },
  task: { kind: 'list', argument: 'NAME', help: 'Tasks that ship, or files of rows.', ...oneInput },
  ...{ ...datasetOptions, ...evaluateOptions, ...taskOptions },
  card: { kind: 'text', argument: 'README.md', help: 'A model card that takes what the first model scored.' },
  ...runOptions,
} as const satisfies Options;

type Command = Arguments<typeof options>;

export const evaluateVerb = defineVerb({
  name: 'evaluate',
  subjects: ['model'],
  several: true,
  about: `Perplexity of a model on a text, on an array of token ids, or on a text, jsonl or parquet file of a dataset on the Hub, of which the first rows or characters are taken; conversations are read by the model's chat template. Or accuracy on tasks as lm-evaluation-harness scores them: NAME is ${taskNames(({ embeds }) => !embeds)}, or a .jsonl of your own: of question, choices and answer, of question and answer with “#### ” (as GSM8K), or of prompt, instruction_id_list and kwargs (as IFEval). Of embeddings and cross-encoders: ${taskNames(({ embeds }) => embeds === true)}, a .tsv of two sentences and how alike they are (Spearman), or a .jsonl of query, positive and negative (nDCG@10). --limit takes the first items, or some drawn by --sample-seed. --card puts the first model's results into the front matter of its model card (model-index). Several models and recipes are measured side by side, and compared with the first (paired test).`,
  options,
  belongs: {
    dataset: ['rows', 'characters'],
    task: ['limit', 'fewshot', 'fewshotSeed', 'card'],
    limit: ['sampleSeed'],
  },

  check({ subjects, options: { task, perToken, dataset }, given }) {
    const odd = ['window', 'stride', 'per-token', 'weights'].find(
      (flag) => task.length > 0 && given.has(flag),
    );
    if (odd !== undefined) throw usage(`--${odd} is for perplexity; it does not go with --task.`);
    if (subjects.length > 1 && perToken) throw usage('--per-token is for one model.');
    if (dataset !== undefined && !DATASET.test(dataset)) {
      throw usage(`--dataset is ${dataset}; it is owner/name[@revision]:path[:column].`);
    }
  },

  run: (command, place) =>
    command.options.task.length > 0 ? runTasks(command, place) : evaluate(command, place),
});

/** Scores tasks: opens all models in one engine, scores them side by side, prints a table and the tests. */
async function runTasks({ subjects: names, options }: Command, place: Place): Promise<number> {
  const { workingFolder, say, write } = place;
  const writeReport = await reportWriter(options.report, workingFolder);
  const card = options.card === undefined ? undefined : resolve(workingFolder, options.card);
  if (card !== undefined) await readTextFile(card, workingFolder);
  const tasks: TaskSource[] = [];
  for (const name of options.task) tasks.push(await taskSource(name, workingFolder));
  const { calls, targets } = await openTargets(names, place, options);
  const { engine, fewshotSeed, sampleSeed } = options;
  const items = itemsOf(options);
  const report = await withProgress((print) =>
    calls.scoreTasks({ targets, tasks, ...items, engine, fewshotSeed }, print),
  );
  await writeReport({
    config: { limit: items.limit, fewshot_seed: fewshotSeed, sample_seed: sampleSeed ?? null, engine },
    datasets: datasetsOf(report),
    models: report.models.map((model, i) => harnessResults(names[i]!, model, report.tasks)),
    comparisons: comparisons(report).map(({ a, b, ...test }) => ({ a: names[a], b: names[b], ...test })),
  });
  if (card !== undefined) await writeCard(card, report);
  await write(`${scoresText(report, names)}\n`);
  const failed = report.models.some((model) => model.tasks.some((outcome) => 'error' in outcome));
  if (failed) say('A model could not be scored: see the table.');
  return failed ? 1 : 0;
}

/** Puts the scores of the first model into its card. */
async function writeCard(card: string, report: ScoreTasksReport): Promise<void> {
  const results = report.tasks.flatMap((info, t) => {
    const outcome = report.models[0]?.tasks[t];
    if (!outcome || 'error' in outcome) return [];
    const { metrics, items } = outcome.score;
    return [cardResult(info, metrics, items.filter(({ refused }) => refused === undefined).length)];
  });
  await changeCard(card, (text) => cardWithResults(text, basename(dirname(card)), results));
}

const datasetsOf = ({ tasks }: ScoreTasksReport) =>
  Object.fromEntries(tasks.map(({ task, dataset, split }) => [task, { dataset, split }]));

/** `owner/name[@revision]:path[:column]` */
const DATASET = /^([^:]+):([^:]+)(?::(.+))?$/;

function datasetOf(named: string, { rows, characters }: Command['options']): DatasetRequest {
  const [, ref = '', path = '', column] = DATASET.exec(named) ?? [];
  return {
    ...{ ref, path, characters },
    ...(column === undefined ? {} : { column }),
    ...(rows === undefined ? {} : { rows }),
  };
}

/** Opens all in one engine and measures them side by side; prints a line of one model, of several a table. */
async function evaluate({ subjects: names, options }: Command, place: Place): Promise<number> {
  const { text, tokens, dataset: named, window, stride, perToken, weights, engine } = options;
  const dataset = named === undefined ? undefined : datasetOf(named, options);
  const writeReport = await reportWriter(options.report, place.workingFolder);
  const file = text === undefined ? { tokensFile: tokens! } : { textFile: text };
  const local = dataset ? undefined : await readInput(file, place.workingFolder);
  const { calls, targets } = await openTargets(names, place, options);
  const report = await withProgress(async (print) => {
    const input = local ?? (await readDataset(dataset!, calls, place, print));
    const protocol = { window, stride, perToken, weights };
    return calls.evaluateMany({ targets, inputs: [input], ...protocol, engine }, print);
  });
  if (names.length === 1) {
    const [outcome] = report.models[0]!.outcomes;
    if (!outcome || 'error' in outcome) throw fromErrorReport(outcome!.error);
    const one = { ...outcome.report, peakBytes: report.peakBytes };
    await writeReport(one);
    await place.write(`${evaluateText(one)}\n`);
    return 0;
  }
  await writeReport({ ...report, models: report.models.map((one, i) => ({ name: names[i]!, ...one })) });
  await place.write(`${evaluationsText(report, names)}\n`);
  return report.models.some(({ outcomes }) => outcomes.some((outcome) => 'error' in outcome)) ? 1 : 0;
}

/** Text of a dataset; prints a summary of what was read. */
async function readDataset(
  dataset: DatasetRequest,
  calls: WorkerCalls,
  { say }: Place,
  onProgress: (progress: RunningProgress) => void,
): Promise<{ text: string }> {
  const read = await calls.readDataset(dataset, onProgress);
  say(datasetText(read));
  return { text: read.text };
}

/* Results of `evaluate` in lines. */

/**
 * A line for each model with its error, and what differs from the first beyond the error. Where models cut the text into other
 * tokens, their bits per byte stand beside.
 */
export function evaluationsText(
  { models, seconds }: Pick<EvaluateManyReport, 'models' | 'seconds'>,
  names: readonly string[],
): string {
  const reports = models.map(({ outcomes: [outcome] }) =>
    outcome && 'report' in outcome ? outcome.report : undefined,
  );
  const known = reports.filter((report) => report !== undefined);
  const isCutAlike = known.every(({ tokens }) => tokens === known[0]!.tokens);
  const [first] = reports;
  const rows = reports.map((report, i) => {
    if (!report) {
      const [outcome] = models[i]!.outcomes;
      const why = outcome && 'error' in outcome ? outcome.error.message : 'not measured';
      return [names[i]!, why, ...(isCutAlike ? [] : ['']), '', '', ''];
    }
    const { perplexity, meanNll, tokens, leftOut } = report;
    const without = leftOut ? ` (${counted(leftOut, 'conversation')} refused by its chat template)` : '';
    const { blocks } = report;
    const apart = i > 0 && first?.blocks && blocks ? pairedDifference([blocks], [first.blocks]) : null;
    const alike = alikeWords(blocks?.length ?? 0, 'block');
    const words = { lower: 'better', higher: 'worse', alike }[verdict(apart, names.length - 1)];
    const error = apart?.stderr == null ? '' : ` ± ${apart.stderr.toFixed(5)}`;
    const against = apart ? `${apart.mean.toFixed(5)}${error}, ${words}` : '';
    const figure = `${perplexity.toFixed(4)}${errorText(report)}`;
    const bits = isCutAlike ? [] : [report.bitsPerByte?.toFixed(4) ?? ''];
    return [names[i]!, figure, ...bits, meanNll.toFixed(5), `${tokens}${without}`, against];
  });
  const more = isCutAlike ? [] : ['bits per byte'];
  const head = ['model', 'perplexity', ...more, 'mean loss', 'tokens', `loss against ${names[0]}`];
  const said = errorWords(rows.some((row) => row.at(-1) !== '') ? names.length - 1 : 0);
  return [...columns([head, ...rows]), '', said, `${formatSeconds(seconds)} in all`].join('\n');
}

/** A line for each model, task and metric, and one for each comparison with the first model. */
export function scoresText(
  report: Pick<ScoreTasksReport, 'models' | 'tasks'>,
  names: readonly string[],
): string {
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
    ({ tokens, seconds, embedding }, m) =>
      `${names[m]}: ${counted(tokens, 'token')} in ${seconds.toFixed(1)} s${seconds > 0 ? `, ${Math.round(tokens / seconds)} tokens/s` : ''}${embedding === undefined ? '' : `; embeddings: ${embedding}`}`,
  );
  const tests = comparisons(report).map(
    ({ task, metric, a, b, difference, stderr, items, verdict: found }) => {
      const error = stderr === null ? '' : ` ± ${stderr.toFixed(4)}`;
      const words = found === 'alike' ? alikeWords(items, 'item') : found;
      return `${names[b]} against ${names[a]} on ${task}, ${metric}: ${difference >= 0 ? '+' : ''}${difference.toFixed(4)}${error} over ${counted(items, 'item')}, ${words}`;
    },
  );
  const table = columns([['model', 'task', 'shots', 'metric', 'value', 'stderr', 'items'], ...rows]);
  return [
    ...table,
    '',
    errorWords(tests.length > 0 ? names.length - 1 : 0),
    ...times,
    ...(tests.length > 0 ? ['', ...tests] : []),
  ].join('\n');
}
