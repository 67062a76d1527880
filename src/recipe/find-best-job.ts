/**
 * The best merge of some models: methods that read no text first, each at its own λ, then Gram merges, then weights, λ and
 * density by CMA-ES (linalg/cma-es.ts) from the best on, all merged as they are read and nothing written. Settings are tuned on
 * one part of the text, rows compared on another, figures reported of a third. What was measured is stored with the time that
 * it took: one that was stopped goes on from there in the same way.
 */
import { normals } from '../backend/philox';
import { searchLambda } from '../calibration/lambda-choice';
import { AmalgamError, type ErrorReport, errorReport, fromErrorReport } from '../errors';
import type { Recipe } from '../formats/recipe';
import { openCmaEs } from '../linalg/cma-es';
import { methodById } from '../merge/methods';
import type { RunTarget } from '../reports/evaluate';
import {
  type BestRow,
  type BestStep,
  type BestText,
  type FindBestProgress,
  type FindBestReport,
  type FindBestRequest,
  TEXT_PARTS,
  type TextPart,
} from '../reports/find-best';
import { type LossBlock, meanLoss } from '../reports/paired-error';
import { throwIfCanceled } from '../sources/cancellation';
import { beginSha256 } from '../sources/sha256';
import { openRecords, type RecordHeader } from '../store/masks';
import { type Candidate, candidatesOf, leastOf, lossOf, sharesOf, winnerOf, withLambda } from './candidates';
import { searchSpace } from './search-space';

/** Losses of a target on some parts of the text, text by text, or why there are none. */
export type Outcome = { blocks: Partial<Record<TextPart, LossBlock[][]>> } | { error: ErrorReport };

/** What measures merges: all that the strategy needs of engines and files. */
export interface BestBench {
  /** Everything about models and texts that figures depend on. */
  key: string;
  texts: readonly Pick<BestText, 'name' | 'kind'>[];
  /** Seconds since the job began, generating text for the most part. */
  seconds: number;
  /** Measures targets side by side. @throws AmalgamError `Canceled` */
  measure(targets: readonly RunTarget[], parts: readonly TextPart[]): Promise<Outcome[]>;
  /** Work of solving Gram merges, in models measured on the parts that are not tuned on. */
  workOf(grams: readonly Recipe[]): number;
  /** Solves Gram merges ahead, several at once; one that fails does so again when it is measured. */
  solve(grams: readonly Recipe[], onProgress: (share: number) => void): Promise<void>;
}

export interface FindBestContext {
  signal: AbortSignal;
  onProgress(progress: FindBestProgress): void;
}

/** Methods whose λ are tuned together: more would hold up the first rows, and a round of few takes hardly less time. */
const TOGETHER = 12;
/** A search ends when so many generations together brought less than this, in nats per token. */
const PATIENCE = { generations: 3, gain: 0.001 };
/** Where the search for λ begins: that of Gram merges was from 0.9 to 1.2 on the sets of docs/importance.md, of others 0.2 to 1. */
const NEAR_ONE = { start: 1, step: 2 } as const;
const NEAR_HALF = { start: 0.6, step: 2 } as const;
/** Parts that rows are compared and reported on. */
const REST = ['choosing', 'reporting'] as const;

/** A row before it is measured on the rest of the text. */
type Tried = Pick<BestRow, 'id' | 'kind' | 'label' | 'target' | 'lambda' | 'tried' | 'error'> & {
  tuning?: LossBlock[][] | undefined;
};

interface SpentHeader extends RecordHeader {
  seconds: number;
}
interface MeasuredHeader extends SpentHeader {
  outcomes: Outcome[];
}

/**
 * Tries what fits, a first group however slow the machine is, tells every row as it is there, and says which is best.
 * @throws AmalgamError `Usage`, `Canceled`, what the bench throws, and the failure of the first merge where none could be measured
 */
export async function findBest(
  { recipe, steps, budget, seed, engine, texts: given, tasks, also = [] }: FindBestRequest,
  bench: BestBench,
  { signal, onProgress }: FindBestContext,
): Promise<FindBestReport> {
  const candidates = candidatesOf(recipe);
  const begun = performance.now();
  const folder = await openRecords(
    JSON.stringify(['best', 1, bench.key, seed, engine]),
    `Measured to find the best merge on ${recipe.baseModel}`,
  );
  const rows = new Map<string, BestRow>();
  const course: FindBestReport['course'] = [];
  let texts: BestText[] = [];
  let lately: FindBestReport['lately'] = null;
  let ended: FindBestReport['ended'] = 'done';
  const count = { measured: 0, reused: 0 };
  /** Seconds that stored results took when they were measured. */
  let earlier = bench.seconds;
  const elapsed = () => earlier + (performance.now() - begun) / 1000;
  /** Whether there is time for more. @param seconds that it takes */
  const within = (seconds = 0) => {
    throwIfCanceled(signal);
    if (elapsed() + seconds <= budget) return true;
    ended = 'budget';
    return false;
  };

  const first = candidates.filter(({ kind, reads }) =>
    steps.includes('methods') ? !reads : kind === 'given',
  );
  const grams = candidates.filter((of) => of.reads && !first.includes(of));
  const [plain, tuned] = [false, true].map((is) => first.filter((of) => of.tuned === is)) as [
    Candidate[],
    Candidate[],
  ];
  const whole = await measureModels();
  const groups = [plain, ...chunks(tuned, TOGETHER)].filter((of) => of.length > 0);
  for (const group of groups) {
    if (group === groups[0] || within()) await step('methods', () => tryAll('methods', group));
  }
  if (steps.includes('gram') && within(whole * bench.workOf(grams.map((of) => of.recipe)))) {
    await step('gram', tryGrams);
  }
  if (steps.includes('search') && within()) await step('search', search);

  const won = winnerOf(inOrder().filter(({ kind }) => kind !== 'also'));
  if (!won) throw failure();
  const own = given.length === 0 && !tasks;
  return {
    ...{ texts, rows: inOrder(), best: won.best.id, alike: won.alike.map(({ id }) => id) },
    ...{ course, lately, ended },
    ...(own ? sharesOf(inOrder(), won.best) : { kept: [], overlap: null }),
    ...{ ...count, seconds: elapsed() },
  };

  /** Base, contributors, and the merges beside. @returns seconds of a model */
  async function measureModels(): Promise<number> {
    const before = elapsed();
    const contributors = (recipe.models ?? []).filter(({ model }) => model !== recipe.baseModel);
    const all = [recipe.baseModel!, ...contributors.map(({ model }) => model)];
    await addRows(
      'methods',
      all.map(
        (model, i): Tried => ({
          ...(i === 0 ? { id: 'base', kind: 'base' } : { id: `model ${model}`, kind: 'contributor' }),
          ...{ label: model, target: { model }, lambda: null, tried: 1 },
        }),
      ),
      REST,
    );
    const seconds = (elapsed() - before) / all.length;
    const row = { kind: 'also', lambda: null, tried: 1 } as const;
    const beside = also.map((own, i): Tried => ({ ...own, ...row, id: `also ${i + 1}` }));
    if (beside.length > 0) await addRows('methods', beside, REST);
    return seconds;
  }

  /** Does a step, and notes what it brought. */
  async function step(name: BestStep, work: () => Promise<void>): Promise<void> {
    const before = elapsed();
    const least = leastOf(rows.values(), 'tuning')?.loss;
    await work();
    const now = leastOf(rows.values(), 'tuning')?.loss;
    if (least !== undefined && now !== undefined) {
      lately = { step: name, seconds: elapsed() - before, gain: least - now };
    }
  }

  async function tryGrams(): Promise<void> {
    const label = grams.map((of) => of.label).join(', ');
    const told = (share: number) => tell('gram', label, share * grams.length, grams.length);
    const recipes = grams.map((of) => of.recipe);
    // solved again where it was before: what is stored of it is found
    const known = await folder.find<SpentHeader>('solved');
    const at = elapsed();
    await bench.solve(recipes, told);
    if (known) earlier += Math.max(0, known.header.seconds - (elapsed() - at));
    else await folder.write<SpentHeader>({ name: 'solved', seconds: elapsed() - at }, []);
    await tryAll('gram', grams);
  }

  /** Candidates side by side: λ tuned where there is one, then measured on the other parts. */
  async function tryAll(name: BestStep, group: readonly Candidate[]): Promise<void> {
    const begin = elapsed();
    const waiting = gathered(group.length, tuningOf);
    const tries = group.map(async ({ id, kind, label, recipe: own, tuned: isTuned }): Promise<Tried> => {
      const known = new Map<number, LossBlock[][]>();
      const row = { id, kind, label, target: { recipe: own }, lambda: null, tried: 1 };
      try {
        if (!isTuned) {
          const { lambda } = own.parameters;
          return { ...row, lambda: typeof lambda === 'number' ? lambda : null };
        }
        const { chosen } = await searchLambda(
          async (lambda) => {
            const outcome = await waiting.ask(withLambda(own, lambda));
            if ('error' in outcome) throw fromErrorReport(outcome.error);
            known.set(lambda, outcome.blocks.tuning!);
            return outcome.blocks.tuning!.map((text) => meanLoss([text]).mean);
          },
          kind === 'gram' ? NEAR_ONE : NEAR_HALF,
        );
        const found = { target: { recipe: withLambda(own, chosen) }, lambda: chosen, tried: known.size };
        return { ...row, ...found, tuning: known.get(chosen) };
      } catch (thrown) {
        if (signal.aborted) throw thrown;
        return { ...row, error: errorReport(thrown) };
      } finally {
        waiting.leave();
      }
    });
    const settled = await Promise.allSettled(tries);
    const failed = settled.find((one) => one.status === 'rejected');
    if (failed) throw failed.reason;
    const tried = settled.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
    await addRows(name, tried, tried.some(({ tuning }) => tuning) ? REST : TEXT_PARTS, begin);
  }

  /** Weights, λ and density around the best merge that has some, from its settings on. */
  async function search(): Promise<void> {
    const starts = inOrder().flatMap((row) => {
      if (!('recipe' in row.target) || !row.blocks.tuning) return [];
      const space = searchSpace(row.target.recipe, methodById.get(row.target.recipe.mergeMethod)!);
      // a λ alone is tuned already
      const isOpen = space && (space.names.length > 1 || row.tried === 1);
      return isOpen ? [{ row, space, loss: lossOf(row, 'tuning') }] : [];
    });
    if (starts.length === 0) {
      if (steps.length > 1) return;
      throw new AmalgamError(
        'Usage',
        `${recipe.mergeMethod} has neither weights nor λ to search for.`,
        'Choose a method that has, for example task_arithmetic, ties or gram.',
      );
    }
    const { row, space, loss } = starts.reduce((a, b) => (b.loss < a.loss ? b : a));
    const label = `${row.label}, searched`;
    const cma = openCmaEs(space.start, 1);
    let best: { recipe: Recipe; tuning: LossBlock[][] } | undefined;
    const least = [loss];
    for (let generation = 1; ; generation++) {
      const [now, then] = [least.at(-1)!, least.at(-1 - PATIENCE.generations)];
      if (then !== undefined && then - now < PATIENCE.gain) {
        if (ended === 'done') ended = 'converged';
        break;
      }
      if (!within()) break;
      tell('search', label, generation - 1, generation + PATIENCE.generations);
      const points = cma.ask(normals(cma.population * space.start.length, [seed, generation]));
      const recipes = points.map((point) => space.recipe(space.values(point)));
      const outcomes = await tuningOf(recipes);
      const losses = outcomes.map((outcome) =>
        'error' in outcome ? Number.POSITIVE_INFINITY : meanLoss(outcome.blocks.tuning!).mean,
      );
      cma.tell(losses);
      const at = losses.indexOf(Math.min(...losses));
      const outcome = outcomes[at]!;
      if (losses[at]! < now && 'blocks' in outcome) {
        best = { recipe: recipes[at]!, tuning: outcome.blocks.tuning! };
      }
      least.push(Math.min(now, losses[at]!));
    }
    if (!best) return;
    const { lambda } = best.recipe.parameters;
    const tried = (least.length - 1) * cma.population;
    const found = {
      label,
      target: { recipe: best.recipe },
      lambda: typeof lambda === 'number' ? lambda : null,
    };
    await addRows('search', [{ id: 'search', kind: 'search', ...found, tried, tuning: best.tuning }], REST);
  }

  /** Measures rows on parts of the text, and tells them. */
  async function addRows(
    name: BestStep,
    tried: readonly Tried[],
    parts: readonly TextPart[],
    begin = elapsed(),
  ): Promise<void> {
    const whole = tried.filter(({ error }) => !error);
    const targets = whole.map(({ target }) => target);
    const outcomes = targets.length > 0 ? await measure(targets, parts) : [];
    const seconds = (elapsed() - begin) / tried.length;
    const fresh = tried.map(({ tuning = null, ...row }): BestRow => {
      const outcome = outcomes[whole.findIndex(({ id }) => id === row.id)];
      const none = { tuning, choosing: null, reporting: null };
      if (!outcome) return { ...row, seconds, blocks: none };
      if ('error' in outcome) return { ...row, seconds, blocks: none, error: outcome.error };
      return { ...row, seconds, blocks: { ...none, ...outcome.blocks } };
    });
    for (const row of fresh) rows.set(row.id, row);
    describeTexts(fresh);
    const best = leastOf(
      inOrder().filter(({ kind }) => kind !== 'also'),
      'choosing',
    );
    if (best && best.loss < (course.at(-1)?.loss ?? Number.POSITIVE_INFINITY)) {
      course.push({ seconds: elapsed(), row: best.row.id, loss: best.loss });
    }
    const all = name === 'methods' ? first.length : name === 'gram' ? grams.length : 1;
    const done = inOrder().filter(({ kind }) => !['base', 'contributor', 'also'].includes(kind)).length;
    tell(name, fresh.at(-1)!.label, Math.min(all, done), all, fresh);
  }

  /** Losses of targets: stored ones, with the time that they took then, or measured now. */
  async function measure(targets: readonly RunTarget[], parts: readonly TextPart[]): Promise<Outcome[]> {
    throwIfCanceled(signal);
    const hash = await beginSha256();
    hash.update(new TextEncoder().encode(JSON.stringify([parts, targets])));
    const name = hash.digest();
    count.measured += targets.length;
    const known = await folder.find<MeasuredHeader>(name);
    if (known) {
      earlier += known.header.seconds;
      count.reused += targets.length;
      return known.header.outcomes;
    }
    const at = performance.now();
    const outcomes = await bench.measure(targets, parts);
    const seconds = (performance.now() - at) / 1000;
    await folder.write<MeasuredHeader>({ name, seconds, outcomes }, []);
    return outcomes;
  }

  function tuningOf(recipes: readonly Recipe[]): Promise<Outcome[]> {
    const targets = recipes.map((of) => ({ recipe: of }));
    return measure(targets, ['tuning']);
  }

  function inOrder(): BestRow[] {
    const order = candidates.map(({ id }) => id);
    const place = ({ id, kind }: BestRow) =>
      kind === 'base' || kind === 'contributor' ? -1 : order.includes(id) ? order.indexOf(id) : order.length;
    return [...rows.values()].sort((a, b) => place(a) - place(b));
  }

  function describeTexts(fresh: readonly BestRow[]): void {
    const tokens = (part: TextPart, text: number) => {
      const blocks = fresh.find((row) => row.blocks[part])?.blocks[part]?.[text] ?? [];
      return blocks.reduce((sum, block) => sum + block.tokens, 0);
    };
    texts = bench.texts.map((text, t) => ({
      ...text,
      tokens: {
        tuning: texts[t]?.tokens.tuning || tokens('tuning', t),
        choosing: texts[t]?.tokens.choosing || tokens('choosing', t),
        reporting: texts[t]?.tokens.reporting || tokens('reporting', t),
      },
    }));
  }

  function tell(name: BestStep, item: string, done: number, total: number, fresh: BestRow[] = []): void {
    const now = elapsed();
    const left = Math.max(0, budget - now);
    const rest = name === 'search' || done === 0 ? left : (now / done) * (total - done);
    const secondsLeft = Math.min(left, rest);
    onProgress({ step: name, item, done, total, seconds: now, secondsLeft, rows: fresh, texts });
  }

  function failure(): AmalgamError {
    const failed = inOrder().find((row) => row.error && row.kind !== 'base' && row.kind !== 'contributor');
    if (failed?.error) return fromErrorReport(failed.error);
    return new AmalgamError('PlanHasErrors', 'No method fits these models.', 'Change the models.');
  }
}

/** Parts of at most so many. */
function chunks<T>(all: readonly T[], size: number): T[][] {
  return Array.from({ length: Math.ceil(all.length / size) }, (_, i) => all.slice(i * size, (i + 1) * size));
}

/**
 * Collects what several members ask for until each of them waits or has left, and has it done in one go.
 * @param members how many ask, each one thing at a time
 */
function gathered<T, R>(members: number, work: (asked: T[]) => Promise<R[]>) {
  let waiting: { asked: T; resolve(result: R): void; reject(thrown: unknown): void }[] = [];
  let here = members;
  const goOn = () => {
    if (waiting.length === 0 || waiting.length < here) return;
    const now = waiting;
    waiting = [];
    work(now.map(({ asked }) => asked)).then(
      (results) => now.forEach(({ resolve }, i) => void resolve(results[i]!)),
      (thrown: unknown) => now.forEach(({ reject }) => void reject(thrown)),
    );
  };
  return {
    ask: (asked: T) =>
      new Promise<R>((resolve, reject) => {
        waiting.push({ asked, resolve, reject });
        goOn();
      }),
    leave() {
      here--;
      goOn();
    },
  };
}
