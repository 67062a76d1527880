import { basename } from 'node:path';
import { GGUF_TYPES, isGgufType } from '../../formats/gguf-type';
import type { RecipeExtensions } from '../../formats/recipe';
import { repositoriesRead } from '../../formats/recipe-models';
import { bestOptions } from '../../recipe/options';
import type { BackendChoice } from '../../reports/backend';
import { BEST_STEPS } from '../../reports/find-best';
import type { Options, OptionValues } from '../../reports/option';
import {
  outOf,
  outOption,
  parseOne,
  placeOf,
  placeOptions,
  runOf,
  runOptions,
  strictOption,
  usage,
  usageOf,
  type Verb,
} from '../arguments';
import { isAccepted, openJob, plannedJob, readSubject, type Where } from '../job';
import { openOutput, requireCommitted } from '../output-folder';
import { bestText, elsewhereLines, mergeText, withProgress } from '../print';
import { reportWriter } from '../report-file';
import { openPusher, type PushOptions, pushFolder, pushText, repoOf } from './push';

interface MergeCommand extends Where {
  recipe: string;
  out: string;
  engine: BackendChoice;
  report?: string;
  /** Goes on with what an interrupted merge left, and leaves the like when interrupted. */
  resume: boolean;
  /** A key or parameter without effect ends it before anything is merged. */
  strict: boolean;
  /** Finds the best within so many seconds, and merges that. */
  recommended?: OptionValues<typeof bestOptions>;
  /** Form of the output by flags, beside the recipe. */
  form: Pick<RecipeExtensions, 'output' | 'gguf' | 'ggufOnly' | 'imatrix'>;
  push?: PushOptions;
}

const mergeOptions = {
  resume: { kind: 'boolean', help: 'Goes on with what an interrupted merge has written.', default: false },
  recommended: {
    kind: 'boolean',
    help: 'Finds the best merge as search does, and merges it.',
    default: false,
  },
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

const merging = { ...outOption, ...mergeOptions, ...strictOption, ...bestOptions, ...runOptions };

type MergeOptions = OptionValues<typeof mergeOptions>;

export const mergeVerb: Verb<MergeCommand> = {
  name: 'merge',
  usage: `  merge <recipe.yml> --out DIR [--recommended ${usageOf(bestOptions)}] [--adapter] [--gguf TYPE [--gguf-only] [--imatrix TEXT]] [--resume] [--strict]
        [--engine auto|webgpu|cpu] [--push owner/name [--private]] [--report FILE.json] ${usageOf(placeOptions)}
      Merges into DIR, which must not exist or be empty. --gguf also writes the result for llama.cpp, as one of the types
      ${GGUF_TYPES.join(', ')}; --gguf-only writes nothing else. --imatrix weights columns
      by how the result uses them on a text: a file beside the recipe, or self for text it generates. A model in place of
      the recipe is converted. With --adapter LoRAs stay a LoRA, which llama.cpp reads too: base+adapter --adapter
      --gguf F16. --recommended finds the best merge of the recipe’s models as search does, on text that
      they generate, and merges that. --report writes every tensor's statistics. With --resume an interrupted merge keeps what it
      has written beside DIR, and the same command continues from there. --push sends the result to the Hub.
`,

  options: merging,

  parse(args) {
    const { subject: recipe, options, given } = parseOne('merge', 'recipe file', args, merging);
    const { resume, strict, recommended, adapter, budget, seed } = options;
    if (!recommended && (given.has('budget') || given.has('seed'))) {
      throw usage('--budget and --seed belong to --recommended.');
    }
    return {
      recipe,
      out: outOf('merge', options),
      resume,
      strict,
      ...(recommended && { recommended: { budget, seed } }),
      form: { ...(adapter ? { output: 'adapter' } : {}), ...ggufOf(options) },
      ...pushOf(options, placeOf(options)),
      ...runOf(options),
    };
  },

  async run(command, place) {
    const { say, undo, workingFolder } = place;
    const { engine, resume, strict, recommended } = command;
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
    if (!isAccepted(plan, strict)) {
      const why = plan.clean ? 'has names without effect' : 'does not fit the models';
      say(`\nNothing was merged: the recipe ${why}.`);
      return 1;
    }
    await output.checkRoom(plan.bytesToWrite);
    const destination = job.worker.writeTo(output, basename(folder));
    const request = {
      ...{ recipe: job.recipe, engine, destination, resume },
      ...(recommended && { recommended: { texts: [], steps: BEST_STEPS, ...recommended } }),
    };
    const report = await withProgress((print) => job.calls.merge(request, print));
    requireCommitted(output);
    await writeReport(report);
    if (report.recommended) say(`${bestText(report.recommended)}\n`);
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
