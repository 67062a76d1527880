/** What measures merges to find the best of them: texts in their parts, tasks, engines, Gram merges that are solved once. */
import type { Backend } from '../backend/backend';
import { type CalibrationOptions, openAhead, writeTexts } from '../calibration/calibration-context';
import { calibrate } from '../calibration/job';
import { heldOutTexts } from '../calibration/lambda-choice';
import type { Recipe } from '../formats/recipe';
import { formatRecipe } from '../formats/recipe-format';
import { openEvaluationBackends } from '../host/backends';
import type { OpenModels } from '../host/models';
import { textSize } from '../merge/methods/importance-parameters';
import type { Plan } from '../merge/plan/plan';
import { withLambda as planWithLambda } from '../merge/plan/plan-lambda';
import type { Prepared } from '../merge/tensor/prepared';
import type { EvaluateManyReport, EvaluateManyRequest, RunTarget } from '../reports/evaluate';
import type { BestText, FindBestRequest, SearchTasks, TextPart } from '../reports/find-best';
import type { ScoreTasksReport, ScoreTasksRequest } from '../reports/tasks';
import { inParts, stretchesOf, type TextParts } from '../reports/text-parts';
import { taskBlocks } from '../tasks/objective';
import { readingRecipe, withLambda } from './candidates';
import { type BestBench, type FindBestContext, findBest, type Outcome } from './find-best-job';

interface Ready {
  plan: Plan;
  exact: boolean;
  prepared?: Prepared;
}
type ReadyOf = (target: RunTarget) => Promise<Ready>;

/** What the bench needs of the session. */
export interface BestHost extends FindBestContext {
  /** The clean plan of a target, and whether it is a model as it is. @throws AmalgamError `PlanHasErrors` */
  plan(target: RunTarget): Promise<Ready>;
  models: OpenModels;
  /** Measures texts, and scores tasks, on targets side by side. */
  measure(request: EvaluateManyRequest, plan: ReadyOf): Promise<EvaluateManyReport>;
  score(request: ScoreTasksRequest, plan: ReadyOf): Promise<ScoreTasksReport>;
}

/** Finds the best merge of opened models. @throws AmalgamError as `findBest`, and what reading models and generating text throws */
export async function runFindBest(request: FindBestRequest, host: BestHost) {
  const begun = performance.now();
  const reading = (await host.plan({ recipe: readingRecipe(request.recipe) })).plan;
  const sized = { ...request, recipe: withReading(request.recipe, reading) };
  const bench = await openBench(sized, host);
  return findBest(sized, { ...bench, seconds: (performance.now() - begun) / 1000 }, host);
}

/** Size of the text that every contributor reads, by the elements of the base; every token is a step of generating. */
const READS = [
  { below: 2e6, windows: 33, length: 128 },
  { below: 2e7, windows: 32, length: 256 },
];

/** The recipe with a size for what its models read, at least 12 tokens per input of the widest layer, unless it has one. */
function withReading(recipe: Recipe, { tensors }: Plan): Recipe {
  const { calibration_windows, calibration_window } = recipe.parameters;
  const elements = tensors.reduce((sum, of) => sum + of.elements, 0);
  const size = READS.find(({ below }) => elements < below);
  if (!size || calibration_windows !== undefined || calibration_window !== undefined) return recipe;
  const reading = { calibration_windows: size.windows, calibration_window: size.length };
  return { ...recipe, parameters: { ...recipe.parameters, ...reading } };
}

async function openBench(request: FindBestRequest, host: BestHost): Promise<Omit<BestBench, 'seconds'>> {
  const { recipe, engine, steps, tasks } = request;
  const { plan } = await host.plan({ recipe: readingRecipe(recipe) });
  const own = request.texts.length === 0 && !tasks;
  const { windows, length } = textSize(recipe.parameters);
  const elements = plan.tensors.reduce((sum, of) => sum + of.elements, 0);
  const optionsOf = (
    onShare: (done: number, total: number, item: string, phase: string) => void,
    backend?: Backend,
  ) =>
    ({
      ...{ models: host.models, engine, signal: host.signal },
      ...(backend && { backend }),
      onProgress: ({ done, total, item, phase }) => onShare(done, total, item, phase),
    }) satisfies CalibrationOptions;
  /** Work done on as many engines as are worth it, each taking the next piece. */
  const onThreads = async (pieces: readonly ((backend: Backend) => Promise<void>)[]) => {
    const work = windows * length * elements;
    const threads = await openEvaluationBackends(engine, pieces.length, work);
    const left = [...pieces];
    try {
      const all = threads.map(async (thread) => {
        for (let next = left.shift(); next; next = left.shift()) await next(thread);
      });
      const failed = (await Promise.allSettled(all)).find(({ status }) => status === 'rejected');
      if (failed?.status === 'rejected') throw failed.reason;
    } finally {
      for (const thread of threads) thread.close();
    }
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
  // text of their own is needed to compare on, or to solve from
  if (own || steps.includes('gram')) {
    const both = steps.includes('gram');
    const pieces = plan.contributors.map(
      (_, i) => (backend: Backend) => writeTexts(plan, i, both, optionsOf(telling(i), backend)),
    );
    await onThreads(pieces);
  }
  const context = await openAhead(plan, optionsOf(telling(0)));
  const { contributors, base } = context.shared;
  const models = [base, ...contributors.map(({ model }) => model)];
  let parts: TextParts = { tuning: [], choosing: [], reporting: [] };
  let texts: Pick<BestText, 'name' | 'kind'>[];
  try {
    if (own) {
      const written = await heldOutTexts(context.shared);
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

  /** Merges that something was solved for, by their recipe with λ = 1. */
  const solved = new Map<string, Promise<Ready>>();
  const prepare = async (recipe: Recipe, options: CalibrationOptions): Promise<Ready> => {
    const made = await host.plan({ recipe });
    const done = await calibrate(made.plan, options);
    return done?.prepared ? { ...made, prepared: done.prepared } : made;
  };
  const ready = async (target: RunTarget, options = optionsOf(() => undefined)): Promise<Ready> => {
    if ('model' in target) return host.plan(target);
    const { lambda } = target.recipe.parameters;
    if (typeof lambda !== 'number') return prepare(target.recipe, options);
    const key = formatRecipe(withLambda(target.recipe, 1));
    const known = solved.get(key) ?? prepare(withLambda(target.recipe, 1), options);
    solved.set(key, known);
    const forget = () => solved.delete(key);
    const { plan, ...rest } = await known.catch((thrown: unknown) => {
      forget();
      throw thrown;
    });
    // what is quickly made again is not kept
    if (!rest.prepared) forget();
    return { ...rest, plan: planWithLambda(plan, lambda) };
  };

  const scored = new Map<string, Outcome>();
  return {
    key: JSON.stringify([formatRecipe(recipe), models, texts, tasks ?? parts]),
    texts,
    measure: (targets, asked) => (tasks ? scoreAll(tasks, targets, asked) : measureAll(targets, asked)),
    workOf(grams) {
      const read = contributors.length * windows * length;
      const passes = grams.map(({ parameters }) => (parameters.match === 'outputs' ? 4 : 1.5));
      const inputs = [...parts.choosing, ...parts.reporting].flat();
      const measured = inputs.reduce(
        (sum, of) => sum + ('ids' in of ? of.ids.length : of.text.length / 4),
        0,
      );
      return (passes.reduce((a, b) => a + b, 0) * read) / Math.max(1, measured);
    },
    async solve(grams, onProgress) {
      const done = grams.map(() => 0);
      const pieces = grams.map((gram, i) => async (backend: Backend) => {
        const tell = (at: number, total: number) => {
          done[i] = total > 0 ? at / total : 0;
          onProgress(done.reduce((a, b) => a + b, 0) / done.length);
        };
        await ready({ recipe: withLambda(gram, 1) }, optionsOf(tell, backend)).catch((thrown: unknown) => {
          if (host.signal.aborted) throw thrown;
        });
      });
      await onThreads(pieces);
    },
  };

  async function measureAll(targets: readonly RunTarget[], asked: readonly TextPart[]): Promise<Outcome[]> {
    const inputs = asked.flatMap((part) => parts[part].flat());
    const { models } = await host.measure({ targets: [...targets], inputs, engine }, ready);
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
      const report = await host.score({ ...wanted, targets: fresh, engine }, ready);
      for (const [i, { tasks: outcomes }] of report.models.entries()) {
        const failed = outcomes.find((outcome) => 'error' in outcome);
        const all = () => taskBlocks(report.tasks, outcomes, metric);
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
