/**
 * The best merge of some models: methods that read no text first, each at its own λ, then Gram merges, then weights, λ and
 * density by CMA-ES (linalg/cma-es.ts) from the best on, then methods that trim, all merged as they are read and nothing written. Settings are tuned on
 * one part of the text, rows compared on another; a third is read at the end alone, by the models and the merges that may be the
 * best. What was measured is stored with the time that it took: one that was stopped goes on from there in the same way.
 */
import { lowestLambda, nextLambda } from '../calibration/lambda-choice';
import { AmalgamError, type ErrorReport, fromErrorReport } from '../errors';
import type { Recipe } from '../formats/recipe';
import { methodById } from '../merge/methods';
import type {
  BestRow,
  BestStep,
  BestText,
  FindBestProgress,
  FindBestReport,
  FindBestRequest,
  TextPart,
} from '../reports/find-best';
import { type LossBlock, meanLoss } from '../reports/paired-error';
import { throwIfCanceled } from '../sources/cancellation';
import {
  type Candidate,
  candidatesOf,
  describedBy,
  leastOf,
  NEGLIGIBLE,
  reportedOf,
  rivalsOf,
  sharesOf,
  winnerOf,
  withLambda,
} from './candidates';
import { type BestBench, type Outcome, openMeasured } from './measured-targets';
import { searchSpace } from './search-space';
import { type Aim, aimedLoss, aimsBetween, openTuning, PATIENCE } from './tuned-settings';

export interface FindBestContext {
  signal: AbortSignal;
  onProgress(progress: FindBestProgress): void;
}

/** Methods whose λ are tuned together: more would hold up the first rows, and a round of few takes hardly less time. */
const TOGETHER = 12;
/** Tries of λ that a method takes as a rule, each on a part of the text. */
export const TRIES = 3;
/** Where the search for λ begins: that of Gram merges was from 0.9 to 1.2 on the sets of docs/importance.md, of others 0.2 to 1. */
const NEAR_ONE = { start: 1, step: 2 } as const;
const NEAR_HALF = { start: 0.6, step: 2 } as const;
/** Rows that time is kept for, to compare them on more text at the end. */
const RIVALS = 4;
/** Longest time that a timer takes. */
const MOST_MS = 2 ** 31 - 1;
/** Most of the budget that is kept to compare them. */
const REST_SHARE = 1 / 5;

/** A row before it is measured on the rest of the text. */
type Tried = Pick<BestRow, 'id' | 'kind' | 'label' | 'target' | 'lambda' | 'tried' | 'error' | 'from'> & {
  tuning?: LossBlock[][] | undefined;
};

/**
 * Tries what fits, a first group however slow the machine is, tells every row as it is there, and says which is best.
 * @throws AmalgamError `Usage`, `Canceled`, what the bench throws, and the failure of the first merge where none could be measured
 */
export async function findBest(
  { recipe, steps, budget, seed, engine, texts: given, tasks, also = [], front, shape }: FindBestRequest,
  bench: BestBench,
  { signal, onProgress }: FindBestContext,
): Promise<FindBestReport> {
  const candidates = candidatesOf(recipe);
  const measured = await openMeasured(bench, JSON.stringify([bench.key, seed, engine]), recipe.baseModel!);
  const { elapsed, spent } = measured;
  const contributors = (recipe.models ?? []).filter(({ model }) => model !== recipe.baseModel);
  /** Work of a method, its tries of λ and comparing it, and what is kept for the end, in models on a part of the text. */
  const partWork = 1 + bench.opening;
  const usualWork = (TRIES + 1) * partWork;
  const [restWork, reportedWork] = [bench.rest + bench.opening, bench.reported + bench.opening];
  /** Of the base, contributors, merges beside and the winner. */
  const reportWork = (contributors.length + also.length + 2) * reportedWork;
  const rows = new Map<string, BestRow>();
  const course: FindBestReport['course'] = [];
  let texts: BestText[] = [];
  let lately: FindBestReport['lately'] = null;
  let ended: FindBestReport['ended'] = 'done';
  const reportSeconds = () => reportWork * measured.pace();
  /** Seconds kept for the end. */
  const endSeconds = () => {
    const rest = bench.rest > 0 ? RIVALS * restWork * measured.pace() : 0;
    return Math.min(rest, REST_SHARE * budget) + reportSeconds();
  };
  /** Whether there is time for more. @param work models on a part of the text */
  const within = (work: number, kept = endSeconds()) => {
    throwIfCanceled(signal);
    if (spent() < budget && spent() + work * measured.pace() + kept <= budget) return true;
    ended = 'budget';
    return false;
  };

  const wanted = candidates.filter(
    ({ kind, reads }) => kind === 'given' || steps.includes(reads ? 'gram' : 'methods'),
  );
  const first = wanted.filter(({ reads, trims }) => !reads && !trims);
  const grams = wanted.filter(({ reads }) => reads);
  const trimmed = wanted.filter(({ trims }) => trims);
  await measureModels();
  await tryAll('methods', [...first.filter((of) => !of.tuned), ...first.filter((of) => of.tuned)]);
  await noted('gram', tryGrams);
  if (steps.includes('search') && within(partWork)) await noted('search', search);
  const last = steps.at(-1)!;
  await tryAll(last, trimmed);
  await readOn(last);
  const won = winnerOf(inOrder().filter(({ kind }) => kind !== 'also'));
  if (!won) throw failure();
  await reportOn(last, won);
  const own = given.length === 0 && !tasks;
  const untried = (all: readonly Candidate[]) => all.filter(({ id }) => !rows.has(id)).length;
  const toSearch = Number(steps.includes('search') && !rows.has('search'));
  const left = { methods: untried([...first, ...trimmed]), gram: untried(grams), search: toSearch };
  return {
    ...{ texts, rows: inOrder(), best: won.id },
    ...{ course, lately, ended, left },
    ...(own ? sharesOf(inOrder(), rows.get(won.id)!) : { kept: [], overlap: null }),
    ...{ ...measured.count(), seconds: elapsed() },
  };

  /** Base, contributors, and the merges beside. */
  async function measureModels(): Promise<void> {
    const all = [recipe.baseModel!, ...contributors.map(({ model }) => model)];
    const models = all.map(
      (model, i): Tried => ({
        ...(i === 0 ? { id: 'base', kind: 'base' } : { id: `model ${model}`, kind: 'contributor' }),
        ...{ label: model, target: { model }, lambda: null, tried: 1 },
      }),
    );
    await addRows('methods', models);
    const row = { kind: 'also', lambda: null, tried: 1 } as const;
    const beside = also.map((own, i): Tried => ({ ...own, ...row, id: `also ${i + 1}` }));
    if (beside.length > 0) await addRows('methods', beside);
  }

  /** Rows that may be the best are compared on the rest of the text too, the better ones first: as many as there is time for. */
  async function readOn(name: BestStep): Promise<void> {
    const rivals = rivalsOf(inOrder().filter(({ kind }) => kind !== 'also'));
    let size = bench.rest > 0 && rivals.length > 1 ? rivals.length : 0;
    while (size > 0 && !within(size * restWork, reportSeconds())) size--;
    if (size === 0) return;
    const read = rivals.slice(0, size);
    const targets = read.map(({ target }) => target);
    tell(name, read[0]!.label, 0, 1);
    for (const [i, outcome] of (await measured.take(targets, ['choosing'], 'rest')).entries()) {
      const row = read[i]!;
      if ('error' in outcome) continue;
      const more = outcome.blocks.choosing!;
      const choosing = row.blocks.choosing!.map((text, t) => [...text, ...more[t]!]);
      rows.set(row.id, { ...row, blocks: { ...row.blocks, choosing } });
    }
  }

  /** Reads the last part of the text with the models, the winner and the best merge, then with as many that may be as good as there is time for. */
  async function reportOn(name: BestStep, won: BestRow): Promise<void> {
    const { first, others } = reportedOf(inOrder(), won, bench.reported === 0);
    let size = others.length;
    while (size > 0 && !within((first.length + size) * reportedWork, 0)) size--;
    const read = [...first, ...others.slice(0, size)];
    tell(name, won.label, 0, 1);
    const targets = read.map(({ target }) => target);
    const outcomes = await measured.take(targets, ['reporting']);
    const fresh = read.map((row, i): BestRow => {
      const outcome = outcomes[i]!;
      return 'error' in outcome ? row : { ...row, blocks: { ...row.blocks, ...outcome.blocks } };
    });
    for (const row of fresh) rows.set(row.id, row);
    texts = describedBy(fresh, bench.texts, texts);
    tell(name, won.label, 1, 1, fresh);
  }

  /** Notes what a step brought in which something was tried. */
  async function noted(name: BestStep, work: () => Promise<void>): Promise<void> {
    const before = elapsed();
    const tried = measured.count().measured;
    const least = leastOf(rows.values(), 'tuning')?.loss;
    await work();
    const now = leastOf(rows.values(), 'tuning')?.loss;
    if (least !== undefined && now !== undefined && measured.count().measured > tried) {
      lately = { step: name, seconds: elapsed() - before, gain: least - now };
    }
  }

  /** As many Gram merges, the cheapest first, as can be solved and tried in the time; those that are not ready by then are left out. */
  async function tryGrams(): Promise<void> {
    const tries = (size: number) => size * usualWork;
    const work = (size: number) => bench.workOf(grams.slice(0, size).map((of) => of.recipe)) + tries(size);
    let size = grams.length;
    while (size > 0 && !within(work(size))) size--;
    if (size === 0) return;
    const asked = grams.slice(0, size);
    const label = asked.map((of) => of.label).join(', ');
    const told = (share: number) => tell('gram', label, share * grams.length, grams.length);
    const kept = tries(size) * measured.pace() + endSeconds();
    const deadline = AbortSignal.timeout(Math.min(MOST_MS, Math.ceil(1000 * (budget - spent() - kept))));
    const recipes = asked.map((of) => of.recipe);
    const ready = await bench.solve(recipes, deadline, told);
    if (ready.includes(false)) ended = 'budget';
    await tryAll(
      'gram',
      asked.filter((_, i) => ready[i]),
    );
  }

  /** As many candidates side by side as there is time for, the first however long it takes. */
  async function tryAll(name: BestStep, all: readonly Candidate[]): Promise<void> {
    for (let at = 0; at < all.length; ) {
      const { tuned } = all[at]!;
      let size = all.slice(at, at + TOGETHER).filter((of) => of.tuned === tuned).length;
      while (size > 1 && !within(size * usualWork)) size--;
      const isFirst = [...rows.values()].every(({ kind }) => kind !== 'given' && kind !== 'method');
      if (!within(usualWork) && !isFirst) return;
      await tryGroup(name, all.slice(at, at + size));
      at += size;
    }
  }

  /** λ of each tuned where there is one, until the time is needed to compare. */
  async function tryGroup(name: BestStep, group: readonly Candidate[]): Promise<void> {
    const begin = elapsed();
    const trials = group.map((of) => ({ of, losses: new Map<number, number>() }));
    const found = new Map<Candidate, { lambda: number; tuning: LossBlock[][] }>();
    const errors = new Map<Candidate, ErrorReport>();
    for (let round = 0; ; round++) {
      const known = trials.flatMap(({ losses }) => [...losses.values()]);
      const least = Math.min(leastOf(rows.values(), 'tuning')?.loss ?? Number.POSITIVE_INFINITY, ...known);
      const asked = trials.flatMap(({ of, losses }) => {
        if (!of.tuned || errors.has(of)) return [];
        const behind = Math.min(...losses.values()) - least;
        // a parabola that promised half of what is needed is not believed
        const worth = Math.max(NEGLIGIBLE / 2, behind) / 2;
        const lambda = nextLambda(losses, of.kind === 'gram' ? NEAR_ONE : NEAR_HALF, worth);
        return lambda === undefined ? [] : [{ of, losses, lambda }];
      });
      if (asked.length === 0) break;
      if (round > 0 && !within((asked.length + group.length) * partWork)) break;
      const outcomes = await tuningOf(asked.map(({ of, lambda }) => withLambda(of.recipe, lambda)));
      for (const [i, { of, losses, lambda }] of asked.entries()) {
        const outcome = outcomes[i]!;
        if ('error' in outcome) {
          errors.set(of, outcome.error);
          continue;
        }
        losses.set(lambda, meanLoss(outcome.blocks.tuning!).mean);
        if (lowestLambda(losses) === lambda) found.set(of, { lambda, tuning: outcome.blocks.tuning! });
      }
    }
    const tried = trials.map(({ of, losses }): Tried => {
      const { id, kind, label, recipe: own } = of;
      const { lambda } = own.parameters;
      const given = typeof lambda === 'number' ? lambda : null;
      const row = { id, kind, label, target: { recipe: own }, lambda: given, tried: 1 };
      const error = errors.get(of);
      if (error) return { ...row, lambda: null, error };
      const best = found.get(of);
      if (!best) return row;
      const target = { recipe: withLambda(own, best.lambda) };
      return { ...row, target, ...best, tried: losses.size };
    });
    await addRows(
      name,
      tried,
      begin,
      tried.some(({ tuning }) => tuning) ? ['choosing'] : ['tuning', 'choosing'],
    );
  }

  /** Weights, t, λ and density around the best merge that has some, from its settings on; then between the two texts. */
  async function search(): Promise<void> {
    const starts = (aim: Aim) => {
      const open = inOrder().flatMap((row) => {
        if (row.kind === 'also' || !('recipe' in row.target) || !row.blocks.tuning) return [];
        const own = row.target.recipe;
        const space = searchSpace(own, methodById.get(own.mergeMethod)!, shape);
        // a λ alone is tuned already
        const isOpen = space && (aim || space.names.length > 1 || row.tried === 1);
        return isOpen ? [{ row, space, loss: aimedLoss(row.blocks.tuning, aim) }] : [];
      });
      return open.sort((a, b) => a.loss - b.loss);
    };
    // side by side, so that each has its share of the time
    const between = front ? aimsBetween(front) : [];
    // halfway is the mean itself
    const aims = [null, ...between.filter(([share]) => share !== 0.5)];
    const tunings = aims.flatMap((aim, i) => {
      const [start] = starts(aim);
      return start ? [openTuning(start, seed + i, aim)] : [];
    });
    if (tunings.length > 0) return tune(tunings);
    if (steps.length > 1 || ended === 'budget') return;
    throw new AmalgamError(
      'Usage',
      `${recipe.mergeMethod} has neither weights nor λ to search for.`,
      'Choose a method that has, for example task_arithmetic, ties or gram.',
    );
  }

  /** Goes on with all tunings side by side, until none brings anything or the time is up. */
  async function tune(tunings: readonly ReturnType<typeof openTuning>[]): Promise<void> {
    const begin = elapsed();
    const named = ({ row, aim }: (typeof tunings)[number]): Pick<BestRow, 'id' | 'label'> => {
      const label = `${row.label}, searched`;
      if (!aim) return { id: 'search', label };
      const shares = aim.map((share) => Math.round(100 * share)).join(' : ');
      return { id: `front ${shares}`, label: `${label} for ${shares}` };
    };
    const sum = (open: typeof tunings) => open.reduce((all, { population }) => all + population, 0);
    for (let generation = 0; ; generation++) {
      const open = tunings.filter((of) => !of.ended);
      if (open.length === 0) {
        if (ended === 'done') ended = 'converged';
        break;
      }
      if (!within((sum(open) + tunings.length) * partWork)) break;
      tell('search', named(open[0]!).label, generation, generation + 1 + PATIENCE);
      const outcomes = await tuningOf(open.flatMap((of) => of.ask()));
      for (const of of open) of.tell(outcomes.splice(0, of.population));
    }
    const found = tunings.flatMap((of): Tried[] => {
      if (!of.best) return [];
      const { recipe: own, tuning } = of.best;
      const { lambda } = own.parameters;
      return [
        {
          ...{ ...named(of), kind: 'search', from: of.row.id, target: { recipe: own }, tuning },
          lambda: typeof lambda === 'number' ? lambda : null,
          tried: of.generations * of.population,
        },
      ];
    });
    if (found.length > 0) await addRows('search', found, begin);
  }

  /** Measures rows on parts of the text, and tells them. */
  async function addRows(
    name: BestStep,
    tried: readonly Tried[],
    begin = elapsed(),
    parts: readonly TextPart[] = ['choosing'],
  ): Promise<void> {
    const whole = tried.filter(({ error }) => !error);
    const targets = whole.map(({ target }) => target);
    throwIfCanceled(signal);
    const outcomes = targets.length > 0 ? await measured.take(targets, parts) : [];
    const seconds = (elapsed() - begin) / tried.length;
    const fresh = tried.map(({ tuning = null, ...row }): BestRow => {
      const outcome = outcomes[whole.findIndex(({ id }) => id === row.id)];
      const none = { tuning, choosing: null, reporting: null };
      if (!outcome) return { ...row, seconds, blocks: none };
      if ('error' in outcome) return { ...row, seconds, blocks: none, error: outcome.error };
      return { ...row, seconds, blocks: { ...none, ...outcome.blocks } };
    });
    for (const row of fresh) rows.set(row.id, row);
    texts = describedBy(fresh, bench.texts, texts);
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

  function tuningOf(recipes: readonly Recipe[]): Promise<Outcome[]> {
    throwIfCanceled(signal);
    const targets = recipes.map((of) => ({ recipe: of }));
    return measured.take(targets, ['tuning']);
  }

  function inOrder(): BestRow[] {
    const order = candidates.map(({ id }) => id);
    const place = ({ id, kind }: BestRow) =>
      kind === 'base' || kind === 'contributor' ? -1 : order.includes(id) ? order.indexOf(id) : order.length;
    return [...rows.values()].sort((a, b) => place(a) - place(b));
  }

  function tell(name: BestStep, item: string, done: number, total: number, fresh: BestRow[] = []): void {
    const now = elapsed();
    const left = Math.max(0, budget - spent());
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
