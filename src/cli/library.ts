import { basename, join, resolve } from 'node:path';
import { AmalgamError, fromErrorReport } from '../errors';
import { generateOptions } from '../evaluate/options';
import { repositoriesRead } from '../formats/recipe-models';
import { parseRecipe } from '../formats/recipe-yaml';
import { isInRange, rangeWords } from '../reports/option';
import type { WorkerCalls } from '../worker/calls';
import type { Place, Undo } from './arguments';
import { isAccepted, openJob, openTargets, plannedJob, requireRecipe } from './job';
import type * as library from './library-types';
import { openOutput, requireCommitted } from './output-folder';

export { AmalgamError } from '../errors';

export const plan: typeof library.plan = (recipe, options = {}) =>
  within({ recipe }, options, async (place) => {
    const { calls, recipe: opened } = await open(recipe, options, place);
    return calls.plan(opened);
  });

export const merge: typeof library.merge = (recipe, options) =>
  within({ recipe, out: options?.out }, options ?? {}, async (place, ends) => {
    const { engine = 'auto', resume = false, stream = false, onProgress = () => {} } = options;
    const folder = resolve(place.workingFolder, options.out);
    const { output } = await openOutput(folder, place, resume);
    if (resume) place.undo.push(async () => void (output.isCommitted || output.keep()));
    const job = await open(recipe, options, place);
    ends(job.calls);
    const planned = await plannedJob(job, place);
    if (!isAccepted(planned, false)) {
      const { message, remedy } = planned.problems.find(({ severity }) => severity === 'error')!;
      throw new AmalgamError('PlanHasErrors', message, remedy);
    }
    await output.checkRoom(planned.bytesToWrite);
    const destination = job.worker.writeTo(output, basename(folder));
    const report = await job.calls.merge(
      { recipe: job.recipe, engine, destination, resume, stream },
      onProgress,
    );
    requireCommitted(output);
    return report;
  });

export const perplexity: typeof library.perplexity = (model, text, options = {}) =>
  within({ model, text }, options, async (place, ends) => {
    const { engine = 'auto', onProgress = () => {} } = options;
    const { calls, targets } = await openTargets([model], place, options);
    ends(calls);
    const report = await calls.evaluateMany({ targets, inputs: [{ text }], engine }, onProgress);
    const outcome = report.models[0]!.outcomes[0]!;
    if ('error' in outcome) throw fromErrorReport(outcome.error);
    return { ...outcome.report, peakBytes: report.peakBytes };
  });

export const generate: typeof library.generate = (model, prompt, options = {}) =>
  within({ model, prompt }, options, async (place, ends) => {
    const {
      engine = 'auto',
      onProgress = () => {},
      maxTokens = 64,
      temperature = 0,
      topP = 1,
      seed = 0,
    } = options;
    const { chat = false, weights = 'auto' } = options;
    const { calls, targets } = await openTargets([model], place, options);
    ends(calls);
    const settings = { maxTokens, temperature, topP, seed, chat, weights };
    for (const name of ['maxTokens', 'temperature', 'topP', 'seed'] as const) {
      const option = generateOptions[name];
      if (isInRange(option, settings[name])) continue;
      throw new AmalgamError('Usage', `${name} is ${settings[name]}.`, `It takes ${rangeWords(option)}.`);
    }
    return calls.generate({ target: targets[0]!, prompt, ...settings, engine }, onProgress);
  });

function open(recipe: string, options: library.Options, place: Place) {
  return openJob(
    requireRecipe('the recipe', parseRecipe(recipe)),
    join(place.workingFolder, 'recipe.yml'),
    place,
    options,
    repositoriesRead,
  );
}

/**
 * Does it in a session of its own, which ends with it. `ends`: whose job the signal cancels.
 * @throws AmalgamError `Usage` for a text that is none: programs in JavaScript have no types
 */
async function within<T>(
  texts: Readonly<Record<string, unknown>>,
  { folder = '.', signal, onNote = () => {} }: library.Options,
  act: (place: Place, ends: (calls: WorkerCalls) => void) => Promise<T>,
): Promise<T> {
  for (const [name, value] of Object.entries(texts)) {
    if (typeof value === 'string' && value !== '') continue;
    throw new AmalgamError(
      'Usage',
      `${name} is no text, but ${String(value) || 'empty'}.`,
      'Give it as a string.',
    );
  }
  const undo: Undo = [];
  const place = { workingFolder: resolve(folder), undo, say: onNote, write: async () => {} };
  let cancel = () => {};
  signal?.throwIfAborted();
  const onAbort = () => cancel();
  signal?.addEventListener('abort', onAbort);
  // its threads keep no process alive
  const alive = setInterval(() => {}, 60_000);
  try {
    return await act(place, (calls) => {
      cancel = () => void calls.cancel();
      if (signal?.aborted) cancel();
    });
  } finally {
    clearInterval(alive);
    signal?.removeEventListener('abort', onAbort);
    for (const end of undo.reverse()) await end();
  }
}
