import { datasetOptions, evaluateOptions } from '../../evaluate/options';
import type { BackendChoice } from '../../reports/backend';
import type { DatasetRequest } from '../../reports/dataset';
import type { RunningProgress } from '../../reports/evaluate';
import type { OptionValues } from '../../reports/option';
import type { WorkerCalls } from '../../worker/calls';
import { oneOf, parseSome, runOf, runOptions, usage, usageOf } from '../arguments';
import { evaluationsText } from '../evaluate-print';
import { parseTasks, runTasks, scoringOptions, TASK_USAGE, type TaskCommand } from '../evaluate-tasks';
import { type InputFile, readInput } from '../input-files';
import type { Where } from '../job';
import { datasetText, evaluateText } from '../print';
import { withProgress } from '../progress-printer';
import { reportWriter } from '../report-file';
import { openTarget, openTargets } from '../targets';
import type { Place, Verb } from '../verb';

interface EvaluateCommand extends Where, OptionValues<typeof evaluateOptions> {
  /** A model reference, or the path of a recipe whose merge is run without being written. */
  model: string;
  /** Models and recipes besides, measured side by side with the first. */
  others?: string[];
  engine: BackendChoice;
  report?: string;
  input: InputFile | { dataset: DatasetRequest };
}

const inputOptions = {
  text: { kind: 'text', argument: 'FILE', help: 'A text to measure on.' },
  tokens: { kind: 'text', argument: 'IDS.json', help: 'A text as token ids.' },
  dataset: {
    kind: 'text',
    argument: 'owner/name[@rev]:path[:column]',
    help: 'A file of a dataset on the Hub, and its column.',
  },
} as const;

const perplexityOptions = { ...inputOptions, ...datasetOptions, ...evaluateOptions, ...runOptions };

export const evaluateVerb: Verb<EvaluateCommand | TaskCommand> = {
  name: 'evaluate',
  usage: `  evaluate <model> … (${oneOf(inputOptions)})
           ${usageOf(datasetOptions)} ${usageOf(evaluateOptions)}
           ${usageOf(runOptions)}
      Perplexity of a model on a text, on an array of token ids, or on a text, jsonl or parquet file of a dataset on
      the Hub, of which the first rows or characters are taken. Conversations are read by the model's chat template.
      Several models and recipes are measured side by side.

${TASK_USAGE}`,

  options: { ...perplexityOptions, ...scoringOptions },

  parse: (args) => (args.some((arg) => /^--task(=|$)/.test(arg)) ? parseTasks(args) : parseEvaluate(args)),

  run: (command, place) => ('tasks' in command ? runTasks(command, place) : evaluate(command, place)),
};

function parseEvaluate(args: string[]): EvaluateCommand {
  const { subjects, options, given } = parseSome('evaluate', 'model', args, perplexityOptions);
  const [model, ...others] = subjects as [string, ...string[]];
  const { window, stride, perToken } = options;
  if (others.length > 0 && perToken) throw usage('--per-token is for one model.');
  if (Object.keys(inputOptions).filter((name) => given.has(name)).length !== 1) {
    throw usage(
      'evaluate needs either --text FILE, --tokens IDS.json, --dataset owner/name:path or --task NAME.',
    );
  }
  if (!given.has('dataset') && (given.has('rows') || given.has('characters'))) {
    throw usage('--rows and --characters belong to --dataset.');
  }
  return {
    model,
    ...(others.length > 0 && { others }),
    ...runOf(options),
    input: evaluateInput(options),
    ...{ window, stride, perToken },
  };
}

function evaluateInput({
  text,
  tokens,
  dataset,
  rows,
  characters,
}: OptionValues<typeof inputOptions & typeof datasetOptions>): EvaluateCommand['input'] {
  if (text !== undefined) return { textFile: text };
  if (dataset === undefined) return { tokensFile: tokens! };
  const [, ref, path, column] = /^([^:]+):([^:]+)(?::(.+))?$/.exec(dataset) ?? [];
  if (ref === undefined || path === undefined) {
    throw usage(`--dataset is ${dataset}; it is owner/name[@revision]:path[:column].`);
  }
  return {
    dataset: {
      ...{ ref, path, characters },
      ...(column === undefined ? {} : { column }),
      ...(rows === undefined ? {} : { rows }),
    },
  };
}

async function evaluate(command: EvaluateCommand, place: Place): Promise<number> {
  if (command.others) return evaluateMany(command, command.others, place);
  const { window, stride, perToken, engine, input: given } = command;
  const writeReport = await reportWriter(command.report, place.workingFolder);
  const local = 'dataset' in given ? undefined : await readInput(given, place.workingFolder);
  const { job, target } = await openTarget(command, place);
  const report = await withProgress(async (print) => {
    const input = local ?? (await readDataset(given, job.calls, place, print));
    return job.calls.evaluate({ target, input, window, stride, perToken, engine }, print);
  });
  await writeReport(report);
  await place.write(`${evaluateText(report)}\n`);
  return 0;
}

/** Opens all in one engine, measures them side by side, prints a table. */
async function evaluateMany(command: EvaluateCommand, others: string[], place: Place): Promise<number> {
  const { model, window, stride, engine, input: given } = command;
  const names = [model, ...others];
  const writeReport = await reportWriter(command.report, place.workingFolder);
  const local = 'dataset' in given ? undefined : await readInput(given, place.workingFolder);
  const { calls, targets } = await openTargets(names, place, command);
  const report = await withProgress(async (print) => {
    const input = local ?? (await readDataset(given, calls, place, print));
    return calls.evaluateMany({ targets, inputs: [input], window, stride, engine }, print);
  });
  await writeReport({ ...report, models: report.models.map((one, i) => ({ name: names[i]!, ...one })) });
  await place.write(`${evaluationsText(report, names)}\n`);
  return report.models.some(({ outcomes }) => outcomes.some((outcome) => 'error' in outcome)) ? 1 : 0;
}

/** Text of a dataset; what was taken of it is said. */
async function readDataset(
  given: EvaluateCommand['input'],
  calls: WorkerCalls,
  { say }: Place,
  onProgress: (progress: RunningProgress) => void,
): Promise<{ text: string }> {
  const { dataset } = given as { dataset: DatasetRequest };
  const read = await calls.readDataset(dataset, onProgress);
  say(datasetText(read));
  return { text: read.text };
}
