import { basename, resolve } from 'node:path';
import process from 'node:process';
import { GGUF_TYPES } from '../../formats/gguf-type';
import { displayName } from '../../formats/names';
import { formatSeconds } from '../../formats/quantity';
import { repositoriesRead } from '../../formats/recipe-models';
import { bestOptions } from '../../recipe/options';
import { BEST_STEPS } from '../../reports/find-best';
import { defineVerb, outOption, runOptions, strictOption, usage } from '../arguments';
import { bestText } from '../best-text';
import { isAccepted, openJob, plannedJob, readSubject } from '../job';
import { openOutput, requireCommitted } from '../output-folder';
import { chosenPart, findParts, partFolder, requireSameRun, runOf } from '../output-parts';
import { lookAtTarget, refuseNonEmpty } from '../partial-output';
import { elsewhereLines, mergeText, withProgress } from '../print';
import { reportWriter } from '../report-file';
import { openPusher, pushFolder, pushText, repoOf } from './push';

/** Before all parts: no file is written. */
const PREPARED = { index: 0, of: 1, run: '' };

export const mergeVerb = defineVerb({
  name: 'merge',
  subjects: ['recipe.yml'],
  about:
    'Merges into DIR, which must not exist or be empty. --gguf also writes the result for llama.cpp, as this type; --gguf-only writes nothing else. --imatrix weights columns by how the result uses them on a text: a file beside the recipe, or self for text it generates. A model in place of the recipe is converted. With --adapter the result is a LoRA of the base: of LoRAs by their factors, which llama.cpp reads too (base+adapter --adapter --gguf F16), of all else cut to the rank that keeps --energy of its change, or to --rank. --recommended finds the best merge of the recipe’s models as search does, on text that they generate, and merges that. --report writes every tensor’s statistics. With --resume an interrupted merge keeps what it has written beside DIR, and the same command continues from there. Each of n processes, here or on other machines, writes --part i/n beside DIR, of which join makes the same bytes; what needs whole models is computed once by --prepare and found in the same --cache. --push sends the result to the Hub.',
  options: {
    out: { ...outOption.out, either: 'result' },
    prepare: {
      ...{ kind: 'boolean', default: false, either: 'result' },
      help: 'Writes nothing but to the cache: masks, changes and thresholds that all parts need.',
    },
    stream: {
      ...{ kind: 'boolean', default: false },
      help: 'Keeps no inputs: those on the Hub that are not in the cache pass by, read by ranges.',
    },
    resume: { kind: 'boolean', help: 'Goes on with what an interrupted merge has written.', default: false },
    part: {
      kind: 'text',
      argument: 'i/n',
      help: 'Writes this part of the files of weights, to be joined; auto is from a Slurm array.',
    },
    recommended: {
      kind: 'boolean',
      help: 'Finds the best merge as search does, and merges it.',
      default: false,
    },
    adapter: {
      kind: 'boolean',
      help: 'Writes a LoRA: of the base, or of LoRAs alone (merge_method: task_arithmetic), those of image models too.',
      default: false,
    },
    rank: { kind: 'integer', argument: 'R', help: 'Rank of that LoRA where it is cut.', min: 1 },
    energy: {
      kind: 'number',
      argument: 'SHARE',
      help: 'Share of each change that it keeps.',
      ...{ above: 0, max: 1 },
    },
    gguf: { kind: 'choice', values: GGUF_TYPES, help: 'Writes the result for llama.cpp too, as this type.' },
    ggufOnly: { kind: 'boolean', help: 'Writes nothing but the file for llama.cpp.', default: false },
    imatrix: {
      kind: 'text',
      argument: 'TEXT',
      help: 'Weights columns by how the result uses them on a text: a file, or self.',
    },
    push: {
      kind: 'text',
      argument: 'owner/name',
      help: 'Sends the result to this repository on the Hub.',
    },
    private: { kind: 'boolean', help: 'A repository that is made is private.', default: false },
    ...strictOption,
    ...bestOptions,
    ...runOptions,
  },
  belongs: {
    recommended: ['budget', 'seed'],
    adapter: ['rank', 'energy'],
    gguf: ['ggufOnly'],
    push: ['private'],
  },

  check({ options: { part, prepare, recommended, push, stream } }) {
    if (stream && recommended)
      throw usage('--recommended reads the models once for every merge it tries: leave out --stream.');
    if (part === undefined && !prepare) return;
    if (recommended) throw usage('--recommended finds one merge: merge its recipe in parts.');
    if (push !== undefined) throw usage('A part is not pushed: join the parts and push the output.');
  },

  async run({ subjects: [named = ''], options }, place) {
    const { say, undo, workingFolder } = place;
    const {
      engine,
      resume,
      stream,
      recommended,
      budget,
      seed,
      adapter,
      rank,
      energy,
      gguf,
      ggufOnly,
      imatrix,
      hub,
    } = options;
    const push = options.push !== undefined && {
      ...{ repo: repoOf(options.push), private: options.private, replace: false },
      ...(hub !== undefined && { hub }),
    };
    const { recipe: read, file, isRecipe } = await readSubject(named, workingFolder);
    const form = {
      ...(adapter && { output: 'adapter' as const }),
      ...(rank !== undefined && { rank }),
      ...(energy !== undefined && { energy }),
      ...(gguf && { gguf }),
      ...(ggufOnly && { ggufOnly }),
      ...(imatrix !== undefined && { imatrix }),
    };
    const recipe = { ...read, amalgam: { ...read.amalgam, ...form } };
    const writeReport = await reportWriter(options.report, workingFolder);
    const pusher = push && (await openPusher(push, place));
    const whole = resolve(workingFolder, options.out ?? '');
    const chosen = options.part === undefined ? undefined : chosenPart(options.part, process.env);
    // parts of an output that is there would be joined nowhere
    if (chosen) await refuseNonEmpty(await lookAtTarget(whole), whole);
    const finished = chosen ? await findParts(whole) : [];
    const target = chosen ? partFolder(whole, chosen) : whole;
    const isThere = options.prepare || finished.some((part) => part.folder === target);
    const opened = isThere ? undefined : await openOutput(target, place, resume);
    if (resume && opened) {
      const { output } = opened;
      undo.push(async () => {
        if (output.isCommitted || !(await output.find('journal'))) return;
        say(`What was written is kept in ${output.keep()}: with the same recipe it goes on from there.`);
      });
    }
    const job = await openJob(recipe, file, place, options, repositoriesRead);
    const plan = await plannedJob(job, place, isRecipe ? elsewhereLines : undefined);
    if (!isAccepted(plan, options.strict)) {
      const why = plan.clean ? 'has names without effect' : 'does not fit the models';
      say(`\nNothing was merged: the recipe ${why}.`);
      return 1;
    }
    const part = chosen && { ...chosen, run: await runOf(job.recipe, plan) };
    if (part) requireSameRun(finished, part);
    const asked = { recipe: job.recipe, engine, stream };
    if (options.prepare) {
      const destination = { kind: 'nowhere' } as const;
      const report = await withProgress((print) =>
        job.calls.merge({ ...asked, destination, part: PREPARED }, print),
      );
      await writeReport(report);
      say(`What all parts need is in the cache, after ${formatSeconds(report.seconds)}.`);
      return 0;
    }
    if (!opened) {
      say(`${displayName(target)} is there already.`);
      return 0;
    }
    const { folder, output } = opened;
    await output.checkRoom(plan.bytesToWrite / (part?.of ?? 1));
    const destination = job.worker.writeTo(output, basename(whole));
    const request = {
      ...{ ...asked, destination, resume },
      ...(part && { part }),
      ...(recommended && { recommended: { texts: [], steps: BEST_STEPS, budget, seed } }),
    };
    const report = await withProgress((print) => job.calls.merge(request, print));
    requireCommitted(output);
    await writeReport(report);
    if (report.recommended) say(`${bestText(report.recommended)}\n`);
    say(mergeText(report, folder, part));
    if (pusher && push) say(pushText(await pushFolder(pusher.calls, folder, push)));
    return 0;
  },
});
