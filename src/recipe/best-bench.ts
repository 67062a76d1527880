/** What measures merges to find the best of them: texts in their parts, tasks, engines, Gram merges that are solved once. */
import type { Backend } from '../backend/backend';
import type { CalibrationSize } from '../calibration/calibration';
import { type CalibrationOptions, openAhead, writeText } from '../calibration/calibration-context';
import { calibrate } from '../calibration/job';
import type { Datasets } from '../dataset/job';
import { AmalgamError } from '../errors';
import { runEvaluations } from '../evaluate/job';
import { runTasks } from '../evaluate/task-job';
import type { Recipe } from '../formats/recipe';
import { formatRecipe } from '../formats/recipe-format';
import { allEnded } from '../forward/queue';
import { openEvaluationBackends } from '../host/backends';
import type { OpenModels } from '../host/models';
import { textSize } from '../merge/methods/importance-parameters';
import type { Plan } from '../merge/plan/plan';
import { isPlainLambda, withLambda as planWithLambda } from '../merge/plan/plan-lambda';
import type { Prepared } from '../merge/tensor/prepared';
import type { BackendChoice } from '../reports/backend';
import type { RunTarget, TextInput } from '../reports/evaluate';
import type { BestText, FindBestRequest, SearchTasks, TextPart } from '../reports/find-best';
import { amountOf } from '../reports/job';
import { inParts, stretchesOf, type TextParts } from '../reports/text-parts';
import { openRecords, type RecordHeader } from '../store/masks';
import { requireAllParts, taskBlocks } from '../tasks/objective';
import { candidatesOf, readingRecipe, withLambda, withReading } from './candidates';
import { type FindBestContext, findBest, TRIES } from './find-best-job';
import type { BestBench, Outcome } from './measured-targets';

interface Ready {
  plan: Plan;
  exact: boolean;
  prepared?: Prepared;
}

/** What the bench needs of the session. */
export interface BestHost extends FindBestContext {
  /** The clean plan of a target, and whether it is a model as it is. @throws AmalgamError `PlanHasErrors` */
  plan(target: RunTarget): Promise<Ready>;
  models: OpenModels;
  /** Rows of data sets, for tasks. */
  rows: Datasets['rows'];
}

/** Finds the best merge of opened models. @throws AmalgamError as `findBest`, and what reading models and generating text throws */
export async function runFindBest(request: FindBestRequest, host: BestHost) {
  const begun = performance.now();
  requireTwo(request);
  const reading = (await host.plan({ recipe: readingRecipe(request.recipe) })).plan;
  const sized = { ...request, recipe: withReading(request.recipe, reading, request.budget) };
  const engines = openEngines(request.engine);
  try {
    const bench = await openBench(sized, host, engines, begun);
    return await findBest(sized, { ...bench, seconds: (performance.now() - begun) / 1000 }, host);
  } finally {
    await engines.close();
  }
}

/** @throws AmalgamError `Usage` for a front of other than two texts or tasks */
function requireTwo({ front, recipe, texts, tasks }: FindBestRequest): void {
  const own = (recipe.models ?? []).filter(({ model }) => model !== recipe.baseModel);
  const { length } = tasks?.tasks ?? (texts.length > 0 ? texts : own);
  if (front === undefined || length === 2) return;
  throw new AmalgamError(
    'Usage',
    `A front lies between two texts or tasks, and there are ${length}.`,
    'Give two with --text or --task, or leave --front out.',
  );
}

/** Engines for as long as merges are measured: on the processor one per core, since starting them takes longer than a measurement. */
function openEngines(choice: BackendChoice) {
  let opened: ReturnType<typeof openEvaluationBackends> | undefined;
  return {
    open() {
      const all = Number.POSITIVE_INFINITY;
      opened ??= openEvaluationBackends(choice, all, all);
      return opened;
    },
    /** Another call of `open` opens them anew: of a device that was lost. */
    async close() {
      const open = await opened?.catch(() => undefined);
      opened = undefined;
      for (const engine of open ?? []) engine.close();
    },
  };
}

/** Share of the budget that writing the text to compare on may take, however slow the models are: the rest is for merges. */
const WRITING_SHARE = 1 / 3;
/** Calibration whose held-out text merges are compared on: more and shorter windows than those that are read, as every token is a step. */
function comparedSize({ parameters }: Recipe): CalibrationSize {
  const { windows, length } = textSize(parameters);
  return { windows: 3 * windows, length: Math.max(32, length / 2) };
}

/** Share of the time that is left once the text is there in which all that reads none is tried, on as much of the text as fits. */
const TRYING_SHARE = 1 / 2;
/** Stretches of a text that a part has however slow the models are, and how many times as much rivals are compared on at most. */
const LEAST_STRETCHES = 4;
const MOST_REST = 3;

/**
 * The first stretches of every text; of a λ half of many says as much (docs/importance.md). Of given texts all is reported, as
 * where they are measured alone: however little fits, a model has one number.
 */
function firstOf(parts: TextParts, count: number, own: boolean): TextParts {
  const first = (texts: TextInput[][], most: number) => texts.map((stretches) => stretches.slice(0, most));
  return {
    tuning: first(parts.tuning, count < 8 ? count : Math.ceil(count / 2)),
    choosing: first(parts.choosing, count),
    reporting: own ? first(parts.reporting, count) : parts.reporting,
  };
}

/** Work of solving a Gram merge by what it matches, in passes over what is read; as measured on the sample. */
const PASSES = new Map<unknown, number>([
  [undefined, 0.6],
  ['outputs', 1.6],
  ['stream', 1.6],
]);

interface StretchesHeader extends RecordHeader {
  stretches: number;
  /** As in {@link BestBench}. */
  opening: number;
}

async function openBench(
  request: FindBestRequest,
  host: BestHost,
  engines: ReturnType<typeof openEngines>,
  begun: number,
): Promise<Omit<BestBench, 'seconds'>> {
  const { recipe, engine, tasks, budget } = request;
  const { plan } = await host.plan({ recipe: readingRecipe(recipe) });
  const own = request.texts.length === 0 && !tasks;
  const { windows, length } = textSize(recipe.parameters);
  const optionsOf = (
    onShare: (done: number, total: number, item: string, phase: string) => void,
    backend?: Backend,
    signal = host.signal,
  ) =>
    ({
      ...{ models: host.models, engine, signal },
      ...(backend && { backend }),
      onProgress(progress) {
        const { done, total } = amountOf(progress);
        onShare(done, total, progress.item, progress.phase);
      },
    }) satisfies CalibrationOptions;
  /** Work done on all engines, each taking the next piece. */
  const onThreads = async (pieces: readonly ((backend: Backend) => Promise<void>)[]) => {
    const left = [...pieces];
    const all = (await engines.open()).map(async (thread) => {
      for (let next = left.shift(); next; next = left.shift()) await next(thread);
    });
    await allEnded(all);
  };

  const shares = plan.contributors.map(() => ({ done: 0, total: 0 }));
  const telling = (at: number) => (done: number, total: number, item: string, phase: string) => {
    if (phase === 'hashing') return;
    const step = phase === 'downloading' ? phase : 'writing';
    if (step === 'writing') shares[at] = { done, total };
    const sum = (of: 'done' | 'total') => shares.reduce((all, share) => all + share[of], 0);
    const amount = step === 'writing' ? { done: sum('done'), total: sum('total') } : { done, total };
    host.onProgress({ step, item, rows: [], ...amount, seconds: 0, secondsLeft: null });
  };
  const written: number[][][] = [];
  if (own) {
    const rounds = Math.ceil(plan.contributors.length / (await engines.open()).length);
    const allowed = (1000 * budget * WRITING_SHARE) / rounds;
    const pieces = plan.contributors.map((_, i) => async (backend: Backend) => {
      const begun = performance.now();
      const enough = () => performance.now() - begun > allowed;
      const wanted = { use: 'held-out', size: comparedSize(recipe), enough } as const;
      written[i] = await writeText(plan, i, wanted, optionsOf(telling(i), backend));
    });
    await onThreads(pieces);
  }
  const context = await openAhead(plan, optionsOf(telling(0)));
  const { contributors, base } = context.shared;
  const models = [base, ...contributors.map(({ model }) => model)];
  let parts: TextParts = { tuning: [], choosing: [], reporting: [] };
  let texts: Pick<BestText, 'name' | 'kind'>[];
  try {
    if (own) {
      parts = inParts(written.map((sequences) => sequences.map((ids) => ({ ids }))));
      texts = contributors.map(({ id, source }) => ({
        name: id,
        kind: source.kind === 'self' ? 'generated' : 'given',
      }));
    } else if (tasks) {
      texts = tasks.tasks.map((task) => ({
        name: 'name' in task ? task.name : task.file.name,
        kind: 'task',
      }));
    } else {
      parts = inParts(request.texts.map(({ name, input }) => stretchesOf(input, name)));
      texts = request.texts.map(({ name }) => ({ name, kind: 'given' }));
    }
  } finally {
    context.close();
  }

  /** Merges that something was solved for, by their recipe with λ = 1 and nothing of the sum. */
  const solved = new Map<string, Promise<Ready>>();
  const prepare = async (recipe: Recipe, options: CalibrationOptions): Promise<Ready> => {
    const made = await host.plan({ recipe });
    const done = await calibrate(made.plan, options);
    return done?.prepared ? { ...made, prepared: done.prepared } : made;
  };
  const ready = async (target: RunTarget, options = optionsOf(() => undefined)): Promise<Ready> => {
    if ('model' in target) return host.plan(target);
    const { sum, ...parameters } = target.recipe.parameters;
    const { lambda } = parameters;
    if (!isPlainLambda(lambda)) return prepare(target.recipe, options);
    const alone = withLambda({ ...target.recipe, parameters }, 1);
    const key = formatRecipe(alone);
    const known = solved.get(key) ?? prepare(alone, options);
    solved.set(key, known);
    const forget = () => solved.delete(key);
    const { plan, ...rest } = await known.catch((thrown: unknown) => {
      forget();
      throw thrown;
    });
    // what is quickly made again is not kept
    if (!rest.prepared) forget();
    return {
      ...rest,
      plan: sum === undefined ? planWithLambda(plan, lambda) : (await host.plan(target)).plan,
    };
  };

  const scored = new Map<string, Outcome>();
  const key = JSON.stringify([formatRecipe(recipe), models, texts, tasks ?? parts]);
  const most = Math.max(...parts.choosing.map(({ length }) => length));
  const { stretches, opening } = tasks ? { stretches: most, opening: 0 } : await fittingStretches();
  const first = firstOf(parts, stretches, own);
  // of a task all is known at once
  const reported = tasks ? 0 : own ? 1 : most / stretches;
  const rest = parts.choosing.map((text) => text.slice(stretches, (1 + MOST_REST) * stretches));
  return {
    key: JSON.stringify([key, stretches]),
    texts,
    rest: Math.min(MOST_REST, most / stretches - 1),
    reported,
    opening,
    measure(targets, asked, which) {
      if (tasks) return scoreAll(tasks, targets, asked);
      return measureAll(targets, asked, which === 'rest' ? { ...first, choosing: rest } : first);
    },
    workOf(grams) {
      const read = contributors.length * windows * length;
      // writing what they read included
      const passes = [1, ...grams.map(({ parameters: { match } }) => PASSES.get(match) ?? 0)];
      const measured = first.choosing
        .flat()
        .reduce((sum, of) => sum + ('ids' in of ? of.ids.length : of.text.length / 4), 0);
      return (passes.reduce((a, b) => a + b, 0) * read) / Math.max(1, measured);
    },
    async solve(grams, deadline, onProgress) {
      const signal = AbortSignal.any([host.signal, deadline]);
      const done = [...contributors, ...grams].map(() => 0);
      const tellOf = (piece: number) => (at: number, total: number) => {
        done[piece] = total > 0 ? at / total : 0;
        onProgress(done.reduce((a, b) => a + b, 0) / done.length);
      };
      const isReady = grams.map(() => false);
      const texts = contributors.map((_, i) => async (backend: Backend) => {
        await writeText(plan, i, { use: 'calibration' }, optionsOf(tellOf(i), backend, signal));
      });
      const solving = grams.map((gram, i) => async (backend: Backend) => {
        const options = optionsOf(tellOf(contributors.length + i), backend, signal);
        await ready({ recipe: withLambda(gram, 1) }, options).catch((thrown: unknown) => {
          if (signal.aborted) throw thrown;
        });
        isReady[i] = true;
      });
      try {
        await onThreads(texts);
        await onThreads(solving.filter((_, i) => PASSES.has(grams[i]!.parameters.match)));
        // what is made of the others finds them
        await onThreads(solving.filter((_, i) => !PASSES.has(grams[i]!.parameters.match)));
      } catch (thrown) {
        if (host.signal.aborted || !deadline.aborted) throw thrown;
      }
      return isReady;
    },
  };

  async function sideBySide() {
    const { models, signal } = host;
    return { plan: ready, models, signal, engines: await engines.open(), onProgress: () => undefined };
  }

  /** Stretches of a text in a part with which everything that reads no text is tried in its time; as it was found the first time. */
  async function fittingStretches(): Promise<Pick<StretchesHeader, 'stretches' | 'opening'>> {
    if (most <= LEAST_STRETCHES) return { stretches: most, opening: 0 };
    const records = await openRecords(
      JSON.stringify(['best text', 2, key]),
      `Text to compare merges of ${recipe.baseModel}`,
    );
    const known = await records.find<StretchesHeader>('stretches');
    if (known) return known.header;
    const tried = candidatesOf(recipe).filter(({ reads, trims }) => !reads && !trims);
    const probe = tried.slice(0, (await engines.open()).length).map((of) => ({ recipe: of.recipe }));
    const secondsOf = async (count: number) => {
      const at = performance.now();
      await measureAll(probe, ['choosing'], firstOf(parts, count, own));
      return (performance.now() - at) / 1000 / probe.length;
    };
    // the first time models are opened
    await secondsOf(1);
    const [one, several] = [await secondsOf(1), await secondsOf(LEAST_STRETCHES)];
    const each = Math.max(several - one, several / LEAST_STRETCHES) / (LEAST_STRETCHES - 1);
    const begins = Math.max(0, one - each);
    const rows = models.length + (request.also?.length ?? 0) + tried.length;
    const atEnd = rows - tried.length + 1;
    const compared = rows + TRIES * tried.length;
    // all is reported of given texts, however few fit
    const [work, whole] = own ? [compared + atEnd, 0] : [compared, atEnd * most];
    const left = TRYING_SHARE * (budget - (performance.now() - begun) / 1000) - begins * (compared + atEnd);
    const fitting = Math.floor((left / each - whole) / work);
    const stretches = Math.max(LEAST_STRETCHES, Math.min(most, fitting));
    const found = { stretches, opening: begins / (each * stretches) };
    await records.write<StretchesHeader>({ name: 'stretches', ...found }, []);
    return found;
  }

  async function measureAll(
    targets: readonly RunTarget[],
    asked: readonly TextPart[],
    parts: TextParts,
  ): Promise<Outcome[]> {
    const inputs = asked.flatMap((part) => parts[part].flat());
    const { models } = await runEvaluations({ targets: [...targets], inputs, engine }, await sideBySide());
    const isLost = models.some(({ outcomes }) =>
      outcomes.some((outcome) => 'error' in outcome && outcome.error.code === 'GpuLost'),
    );
    if (isLost) await engines.close();
    return models.map(({ outcomes }) => {
      const failed = outcomes.find((outcome) => 'error' in outcome);
      if (failed && 'error' in failed) return { error: failed.error };
      let at = 0;
      const next = () => {
        const outcome = outcomes[at++]!;
        return 'report' in outcome ? (outcome.report.blocks ?? []) : [];
      };
      const blocks = asked.map((part) => [part, parts[part].map((text) => text.flatMap(next))]);
      return { blocks: Object.fromEntries(blocks) };
    });
  }

  /** Tasks are scored whole: what is chosen by one part of the items is known on the others. */
  async function scoreAll(
    { metric, ...wanted }: SearchTasks,
    targets: readonly RunTarget[],
    asked: readonly TextPart[],
  ): Promise<Outcome[]> {
    const keys = targets.map((target) => JSON.stringify(target));
    const fresh = targets.filter((_, i) => !scored.has(keys[i]!));
    if (fresh.length > 0) {
      const asked = { ...wanted, targets: fresh, engine };
      const report = await runTasks(asked, { ...(await sideBySide()), rows: host.rows });
      for (const [i, { tasks: outcomes }] of report.models.entries()) {
        const failed = outcomes.find((outcome) => 'error' in outcome);
        const all = () => {
          const blocks = taskBlocks(report.tasks, outcomes, metric);
          requireAllParts(report.tasks, blocks);
          return blocks;
        };
        scored.set(
          JSON.stringify(fresh[i]),
          failed && 'error' in failed ? { error: failed.error } : { blocks: all() },
        );
      }
    }
    return keys.map((key) => {
      const outcome = scored.get(key)!;
      if ('error' in outcome) return outcome;
      return { blocks: Object.fromEntries(asked.map((part) => [part, outcome.blocks[part]!])) };
    });
  }
}
