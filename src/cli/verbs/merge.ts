import { basename } from 'node:path';
import { GGUF_TYPES, isGgufType } from '../../formats/gguf-type';
import { displayName } from '../../formats/names';
import { formatSeconds } from '../../formats/quantity';
import type { RecipeExtensions } from '../../formats/recipe';
import { repositoriesRead } from '../../formats/recipe-models';
import type { BackendChoice } from '../../reports/backend';
import { OVERLAPS, type RecommendedReport } from '../../reports/merge';
import type { Options, OptionValues } from '../../reports/option';
import {
  outOf,
  outOption,
  parseOne,
  placeOf,
  placeOptions,
  runOf,
  runOptions,
  usage,
  usageOf,
  type Verb,
} from '../arguments';
import { openJob, plannedJob, readSubject, type Where } from '../job';
import { openOutput, requireCommitted } from '../output-folder';
import { columns, elsewhereLines, mergeText, withProgress } from '../print';
import { reportWriter } from '../report-file';
import { openPusher, type PushOptions, pushFolder, pushText, repoOf } from './push';

interface MergeCommand extends Where {
  recipe: string;
  out: string;
  engine: BackendChoice;
  report?: string;
  /** Goes on with what an interrupted merge left, and leaves the like when interrupted. */
  resume: boolean;
  /** Compares methods on text and merges the best. */
  recommended: boolean;
  /** Form of the output by flags, beside the recipe. */
  form: Pick<RecipeExtensions, 'output' | 'gguf' | 'ggufOnly' | 'imatrix'>;
  push?: PushOptions;
}

const mergeOptions = {
  resume: { kind: 'boolean', help: 'Goes on with what an interrupted merge has written.', default: false },
  recommended: { kind: 'boolean', help: 'Compares methods on text and merges by the best.', default: false },
  adapter: { kind: 'boolean', help: 'LoRAs on one base become one LoRA.', default: false },
  gguf: { kind: 'text', argument: 'TYPE', help: 'Writes the result for llama.cpp too, as this type.' },
  ggufOnly: { kind: 'boolean', help: 'Writes nothing but the file for llama.cpp.', default: false },
  imatrix: {
    kind: 'text',
    argument: 'TEXT',
    help: 'Weights columns by how the result uses them on a text: a file, or self.',
  },
  push: { kind: 'text', argument: 'owner/name', help: 'Sends the result to this repository on the Hub.' },
  private: { kind: 'boolean', help: 'A repository that is made is private.', default: false },
} as const satisfies Options;

const merging = { ...outOption, ...mergeOptions, ...runOptions };

type MergeOptions = OptionValues<typeof mergeOptions>;

export const mergeVerb: Verb<MergeCommand> = {
  name: 'merge',
  usage: `  merge <recipe.yml> --out DIR [--recommended] [--adapter] [--gguf TYPE [--gguf-only] [--imatrix TEXT]] [--resume]
        [--engine auto|webgpu|cpu] [--push owner/name [--private]] [--report FILE.json] ${usageOf(placeOptions)}
      Merges into DIR, which must not exist or be empty. --gguf also writes the result for llama.cpp, as one of the types
      ${GGUF_TYPES.join(', ')}; --gguf-only writes nothing else. --imatrix weights columns
      by how the result uses them on a text: a file beside the recipe, or self for text it generates. A model in place of
      the recipe is converted. With --adapter LoRAs stay a LoRA, which llama.cpp reads too: base+adapter --adapter
      --gguf F16. --recommended takes base, models and calibration from the recipe, compares methods on
      text and merges the best. --report writes every tensor's statistics. With --resume an interrupted merge keeps what it
      has written beside DIR, and the same command continues from there. --push sends the result to the Hub.
`,

  options: merging,

  parse(args) {
    const { subject: recipe, options } = parseOne('merge', 'recipe file', args, merging);
    const { resume, recommended, adapter } = options;
    return {
      recipe,
      out: outOf('merge', options),
      ...{ resume, recommended },
      form: { ...(adapter ? { output: 'adapter' } : {}), ...ggufOf(options) },
      ...pushOf(options, placeOf(options)),
      ...runOf(options),
    };
  },

  async run(command, place) {
    const { say, undo, workingFolder } = place;
    const { engine, resume, recommended } = command;
    const { recipe: read, file, isRecipe } = await readSubject(command.recipe, workingFolder);
    const recipe = { ...read, amalgam: { ...read.amalgam, ...command.form } };
    const writeReport = await reportWriter(command.report, workingFolder);
    const pusher = command.push && (await openPusher(command.push, undo));
    const { folder, output } = await openOutput(command.out, place, resume);
    if (resume) {
      undo.push(async () => {
        if (output.isCommitted || !(await output.find('journal'))) return;
        say(`What was written is kept in ${output.keep()}: with the same recipe it goes on from there.`);
      });
    }
    const job = await openJob(recipe, file, place, command, repositoriesRead);
    const plan = await plannedJob(job, place, isRecipe ? elsewhereLines : undefined);
    if (!plan.clean) {
      say('\nNothing was merged: the recipe does not fit the models.');
      return 1;
    }
    await output.checkRoom(plan.bytesToWrite);
    const destination = job.worker.writeTo(output, basename(folder));
    const request = { recipe: job.recipe, engine, destination, resume, ...(recommended && { recommended }) };
    const report = await withProgress((print) => job.calls.merge(request, print));
    requireCommitted(output);
    await writeReport(report);
    if (report.recommended) say(`${recommendedText(report.recommended)}\n`);
    say(mergeText(report, folder));
    if (pusher && command.push) say(pushText(await pushFolder(pusher.calls, folder, command.push)));
    return 0;
  },
};

function pushOf(options: MergeOptions, { hub }: Where): { push?: PushOptions } {
  if (options.push === undefined) {
    if (options.private) throw usage('--private needs --push owner/name.');
    return {};
  }
  const push = { repo: repoOf(options.push), private: options.private, replace: false };
  return { push: { ...push, ...(hub === undefined ? {} : { hub }) } };
}

function ggufOf({ gguf: type, ggufOnly, imatrix }: MergeOptions): MergeCommand['form'] {
  const text = imatrix === undefined ? {} : { imatrix };
  if (type === undefined) {
    if (ggufOnly) throw usage('--gguf-only needs --gguf TYPE.');
    // a type may stand in the recipe
    return text;
  }
  if (!isGgufType(type)) throw usage(`--gguf is ${type}; it is one of ${GGUF_TYPES.join(', ')}.`);
  return ggufOnly ? { gguf: type, ggufOnly: true, ...text } : { gguf: type, ...text };
}

/* The recommended merge in words: the settings tried, and how its result compares. */

function recommendedText(report: RecommendedReport): string {
  const { candidates, chosen, texts, base, contributors, merge, kept, overlap, prompt, answers } = report;
  const figure = (value: number) => value.toFixed(3);
  const tried = candidates.map(({ title, lambda, perplexity, reason, seconds }, i) => [
    i === chosen ? '*' : ' ',
    title,
    lambda === null ? (reason ?? '') : `λ ${lambda}`,
    perplexity === null ? '–' : figure(perplexity),
    formatSeconds(seconds),
  ]);
  const rows = [
    ['perplexity on the text of', ...texts.map(({ id }) => displayName(id))],
    ['base', ...base.map(figure)],
    ...contributors.map(({ id, perplexity }) => [displayName(id), ...perplexity.map(figure)]),
    ['merge', ...merge.map(figure)],
    ['gain kept', ...kept.map((share) => (share === null ? '–' : `${Math.round(100 * share)} %`))],
  ];
  const shared = overlap !== null && overlap > OVERLAPS;
  return [
    'Tried, by the perplexity on the texts together:',
    ...columns(tried),
    '',
    ...columns(rows),
    ...(shared
      ? ['', 'The contributors know some of the same: text of your own would say more about λ.']
      : []),
    '',
    `“${prompt}” goes on as`,
    ...answers.map(({ id, text }) => `  ${displayName(id)}: ${JSON.stringify(text)}`),
  ].join('\n');
}
