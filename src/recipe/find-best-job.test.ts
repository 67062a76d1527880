import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { Recipe } from '../formats/recipe';
import type { RunTarget } from '../reports/evaluate';
import {
  BEST_STEPS,
  type BestRow,
  type FindBestRequest,
  frontOf,
  overfitWords,
  type TextPart,
  twoLosses,
} from '../reports/find-best';
import { type LossBlock, meanLoss, pairedDifference, verdict } from '../reports/paired-error';
import { fakeStorage } from '../store/opfs.test.fake';
import { findBest } from './find-best-job';
import type { BestBench, Outcome } from './measured-targets';

const recipe: Recipe = {
  mergeMethod: 'ties',
  baseModel: 'base',
  models: ['a', 'b'].map((model) => ({ model, parameters: { weight: 1, density: 0.2 } })),
  parameters: { lambda: 1 },
  amalgam: {},
};
const request: FindBestRequest = {
  ...{ recipe, texts: [], steps: BEST_STEPS, budget: 1e6, seed: 3, engine: 'cpu' },
};

beforeEach(() => {
  vi.stubGlobal('navigator', fakeStorage().navigator);
});
afterEach(() => {
  vi.restoreAllMocks();
});

type Loss = (target: RunTarget, part: TextPart) => number;

/** Distance from weights times λ of 0.6 and 1.3: where task arithmetic has its floor. */
const valley: Loss = (target) => {
  if ('model' in target) return 4;
  const { mergeMethod, parameters, models = [] } = target.recipe;
  if (mergeMethod !== 'task_arithmetic') return 3;
  const [a, b] = models.map((of) => Number(of.parameters.weight) * Number(parameters.lambda ?? 1)) as [
    number,
    number,
  ];
  return 1 + (a - 0.6) ** 2 + (b - 1.3) ** 2;
};

/** A bench of two texts in ten blocks, which fluctuate alike for all, and a little for each. */
function benchOf(
  loss: Loss,
  fluctuation = 0,
): BestBench & { asked: { targets: RunTarget[]; parts: TextPart[] }[] } {
  const asked: { targets: RunTarget[]; parts: TextPart[] }[] = [];
  const blocksOf = (target: RunTarget, part: TextPart): LossBlock[][] =>
    [0, 1].map((text) =>
      Array.from({ length: 10 }, (_, i) => {
        const turns = 1 + (JSON.stringify(target).length % 4);
        const own = fluctuation * Math.sin((i * turns * Math.PI) / 5 + text);
        return { loss: 64 * (loss(target, part) + Math.sin((i * Math.PI) / 5) + own), tokens: 64 };
      }),
    );
  return {
    key: 'bench',
    texts: ['a', 'b'].map((name) => ({ name, kind: 'generated' })),
    seconds: 0,
    rest: 0,
    reported: 1,
    opening: 0,
    asked,
    async measure(targets, parts) {
      asked.push({ targets: [...targets], parts: [...parts] });
      return targets.map((target): Outcome => {
        if ('recipe' in target && target.recipe.mergeMethod === 'karcher') {
          return { error: { code: 'LimitExceeded', message: 'too large', hint: '' } };
        }
        return { blocks: Object.fromEntries(parts.map((part) => [part, blocksOf(target, part)])) };
      });
    },
    workOf: (grams) => grams.length,
    async solve(grams, _, onProgress) {
      onProgress(1);
      return grams.map(() => true);
    },
  };
}

async function run(
  bench: BestBench,
  change: Partial<FindBestRequest> = {},
  stopAfter = Number.POSITIVE_INFINITY,
) {
  const stop = new AbortController();
  const told = new Map<string, BestRow>();
  let messages = 0;
  const report = await findBest({ ...request, ...change }, bench, {
    signal: stop.signal,
    onProgress({ rows }) {
      for (const row of rows) told.set(row.id, row);
      if (++messages === stopAfter) stop.abort();
    },
  });
  return { report, told };
}

const loss = (row: BestRow, part: TextPart) => meanLoss(row.blocks[part]!).mean;

test('every method at its own λ, then the weights: the floor of the valley, every row told', async () => {
  const { report, told } = await run(benchOf(valley));
  expect(report.best).toBe('search');
  const best = report.rows.find(({ id }) => id === 'search')!;
  expect(loss(best, 'reporting')).toBeLessThan(1.02);
  expect(report.ended).toBe('converged');
  const arithmetic = report.rows.find(({ id }) => id === 'task_arithmetic')!;
  // (λ − 0.6)² + (λ − 1.3)² is least at 0.95
  expect(arithmetic.lambda).toBeCloseTo(0.95, 1);
  expect([...told.values()].sort((a, b) => a.id.localeCompare(b.id))).toEqual(
    [...report.rows].sort((a, b) => a.id.localeCompare(b.id)),
  );
  expect(report.rows.map(({ id }) => id)).toEqual(
    expect.arrayContaining(['base', 'model a', 'model b', 'given', 'linear', 'gram', 'gram stream']),
  );
  expect(report.lately).toMatchObject({ step: 'search' });
  expect(report.lately!.gain).toBeGreaterThan(0.1);
  expect(report.course.at(-1)!.row).toBe('search');
  // methods that trim were never the best: their time comes last
  const order = [...told.keys()];
  expect(order.slice(order.indexOf('search'))).toEqual(
    expect.arrayContaining(['ties', 'dare_ties', 'della']),
  );
  expect(order.indexOf('gram')).toBeLessThan(order.indexOf('search'));
  // one that cannot be merged says why, and the others go on
  expect(report.rows.find(({ id }) => id === 'karcher')!.error).toMatchObject({ message: 'too large' });
});

test('no row is better than the winner on the choosing text beyond the error of the difference', async () => {
  const uneven: Loss = (target, part) =>
    valley(target, part) + 0.002 * (JSON.stringify(target).length % 7) * (part === 'choosing' ? 1 : -1);
  for (const fluctuation of [0, 0.05, 0.5]) {
    vi.stubGlobal('navigator', fakeStorage().navigator);
    const { report } = await run(benchOf(uneven, fluctuation));
    const best = report.rows.find(({ id }) => id === report.best)!;
    for (const row of report.rows.filter(({ error }) => !error)) {
      const { mean, stderr } = pairedDifference(best.blocks.choosing!, row.blocks.choosing!)!;
      expect(mean, row.id).toBeLessThanOrEqual(stderr!);
    }
  }
});

test('rows that may be the best are compared on the rest of the text, and the winner is the best on all of it', async () => {
  // alike on the first text, where the simpler one would win; on the rest task arithmetic is better
  const first: Loss = (target) => {
    if ('model' in target) return 4;
    const { mergeMethod } = target.recipe;
    return { linear: 1, task_arithmetic: 1 }[mergeMethod] ?? 3;
  };
  const bench = benchOf(first);
  const rest = benchOf((target, part) =>
    'recipe' in target && target.recipe.mergeMethod === 'linear' ? 2 : first(target, part),
  );
  const measured: RunTarget[] = [];
  const { report } = await run(
    {
      ...bench,
      rest: 1,
      measure(targets, parts, stretches) {
        if (stretches !== 'rest') return bench.measure(targets, parts);
        expect(parts).toEqual(['choosing']);
        measured.push(...targets);
        return rest.measure(targets, parts);
      },
    },
    { steps: ['methods', 'gram'] },
  );
  expect(measured.map((target) => 'recipe' in target && target.recipe.mergeMethod).sort()).toEqual([
    'linear',
    'task_arithmetic',
  ]);
  expect(report.best).toBe('task_arithmetic');
  const blocks = (id: string, part: TextPart) =>
    report.rows.find((row) => row.id === id)!.blocks[part]?.flat().length;
  expect(['linear', 'task_arithmetic', 'ties', 'base'].map((id) => blocks(id, 'choosing'))).toEqual([
    40, 40, 20, 20,
  ]);
  expect(['linear', 'task_arithmetic', 'ties', 'base'].map((id) => blocks(id, 'reporting'))).toEqual([
    undefined,
    20,
    undefined,
    20,
  ]);
});

test('the reporting part is read once, at the end, by models, the winner and merges that are not plainly worse', async () => {
  const near: Loss = (target, part) =>
    'recipe' in target && ['linear', 'ram'].includes(target.recipe.mergeMethod) ? 1 : valley(target, part);
  for (const fluctuation of [0.001, 0.5]) {
    vi.stubGlobal('navigator', fakeStorage().navigator);
    const bench = benchOf(near, fluctuation);
    const { report, told } = await run(bench, { steps: ['methods', 'gram'] });
    const reads = bench.asked.filter(({ parts }) => parts.includes('reporting'));
    expect(reads).toEqual([bench.asked.at(-1)]);
    const best = report.rows.find(({ id }) => id === report.best)!;
    const whole = report.rows.filter(({ error }) => !error);
    for (const row of whole) {
      const isModel = row.kind === 'base' || row.kind === 'contributor';
      const apart = pairedDifference(row.blocks.choosing!, best.blocks.choosing!);
      const wanted = isModel || verdict(apart) !== 'higher';
      expect(row.blocks.reporting !== null, `${fluctuation} ${row.id}`).toBe(wanted);
      expect(told.get(row.id)).toEqual(row);
    }
    expect(reads[0]!.targets.length).toBe(whole.filter(({ blocks }) => blocks.reporting).length);
  }
});

test('settings are tuned on one part alone, rows compared on another', async () => {
  // on the other parts λ = 2 would be best, and TIES better than all
  const other: Loss = (target, part) => {
    if (part === 'tuning') return valley(target, part);
    return 'recipe' in target && target.recipe.mergeMethod === 'ties' ? 1 : 5;
  };
  const bench = benchOf(other);
  const { report } = await run(bench);
  expect(report.rows.find(({ id }) => id === 'task_arithmetic')!.lambda).toBeCloseTo(0.95, 1);
  expect(report.best).toBe('given');
  expect(bench.asked.filter(({ parts }) => parts.join() === 'tuning').length).toBeGreaterThan(5);
});

test('of rows that cannot be told apart the simpler one wins, a merge before a model as it is', async () => {
  const flat: Loss = (target) => ('model' in target ? 2 : 2.0001);
  const { report } = await run(benchOf(flat, 0.002), { steps: ['methods'] });
  expect(report.best).toBe('given');
  vi.stubGlobal('navigator', fakeStorage().navigator);
  const worse: Loss = (target) => ('model' in target && target.model === 'base' ? 2 : 3);
  expect((await run(benchOf(worse), { steps: ['methods'] })).report.best).toBe('base');
});

test('stopped and begun again it goes on from what was measured, to the same end', async () => {
  const whole = await run(benchOf(valley));
  vi.stubGlobal('navigator', fakeStorage().navigator);
  await expect(run(benchOf(valley), {}, 4)).rejects.toMatchObject({ code: 'Canceled' });
  const rest = benchOf(valley);
  const { report } = await run(rest);
  const plain = (rows: readonly BestRow[]) => rows.map(({ seconds: _, ...row }) => row);
  expect(plain(report.rows)).toEqual(plain(whole.report.rows));
  expect(report.reused).toBeGreaterThan(0);
  expect(rest.asked.flatMap(({ targets }) => targets).length).toBe(report.measured - report.reused);
});

/** A bench on which a model on a part of the text takes a second, of a clock of its own. */
function slowBench() {
  let now = 0;
  vi.spyOn(performance, 'now').mockImplementation(() => now);
  const bench = benchOf(valley);
  return {
    ...bench,
    async measure(targets: readonly RunTarget[], parts: readonly TextPart[]) {
      now += 1000 * targets.length * parts.length;
      return bench.measure(targets, parts);
    },
    pass: (seconds: number) => {
      now += 1000 * seconds;
    },
  };
}

test('nothing is begun beyond the budget, and with the same again it goes on from what was measured', async () => {
  const { report } = await run(slowBench(), { budget: 15 });
  expect(report.ended).toBe('budget');
  expect(report.rows.map(({ id }) => id)).toEqual(expect.arrayContaining(['base', 'given', 'linear']));
  expect(report.rows.map(({ id }) => id)).not.toContain('task_arithmetic');
  // a step in which nothing was tried brought nothing, and is not spoken of
  expect(report.lately?.seconds).not.toBe(0);
  const again = slowBench();
  const { report: next } = await run(again, { budget: 15 });
  const asked = again.asked.reduce((sum, { targets, parts }) => sum + targets.length * parts.length, 0);
  expect(asked).toBeLessThanOrEqual(15);
  expect(next.rows.length).toBeGreaterThan(report.rows.length);
  expect(next.rows).toEqual(expect.arrayContaining(report.rows));
  // what was measured keeps the time that it took
  expect(next.seconds).toBeCloseTo(report.seconds + asked, 6);
  // with more of it what is tried grows, λ are searched for as long as the rest allows, and it is never overdrawn
  let rows = report.rows.length;
  for (const budget of [20, 40, 75, 110, 200]) {
    vi.stubGlobal('navigator', fakeStorage().navigator);
    const { report: more } = await run(slowBench(), { budget });
    expect(more.seconds, `${budget}`).toBeLessThanOrEqual(budget);
    expect(more.rows.length).toBeGreaterThanOrEqual(rows);
    rows = more.rows.length;
    vi.stubGlobal('navigator', fakeStorage().navigator);
    const { report: onRest } = await run({ ...slowBench(), rest: 1 }, { budget });
    expect(onRest.seconds, `${budget}`).toBeLessThanOrEqual(budget);
  }
  expect(rows).toBeGreaterThan(15);
});

test('of the Gram merges the cheapest are solved that fit, and those that are not ready in time are left out', async () => {
  const solveFor = async (budget: number, seconds: number) => {
    vi.stubGlobal('navigator', fakeStorage().navigator);
    const timeout = vi.spyOn(AbortSignal, 'timeout');
    const bench = slowBench();
    let asked: readonly Recipe[] = [];
    let begun = 0;
    const { report } = await run(
      {
        ...bench,
        workOf: (grams) => 20 * grams.length,
        async solve(grams) {
          asked = grams;
          const deadline = timeout.mock.lastCall![0] / 1000;
          begun = performance.now() / 1000;
          bench.pass(Math.min(deadline, seconds * grams.length));
          return grams.map((_, i) => seconds * (i + 1) <= deadline);
        },
      },
      { budget, steps: ['methods', 'gram'] },
    );
    const tried = report.rows.filter(({ kind }) => kind === 'gram').map(({ id }) => id);
    expect(report.seconds).toBeLessThanOrEqual(budget);
    return { asked: asked.length, tried, begun };
  };
  const { tried: all, begun } = await solveFor(1000, 0);
  expect(all.length).toBeGreaterThan(1);
  expect(await solveFor(begun + 10, 20)).toMatchObject({ asked: 0, tried: [] });
  expect(await solveFor(begun + 30, 20)).toMatchObject({ asked: 1, tried: all.slice(0, 1) });
  // slower than was estimated
  const late = await solveFor(begun + 27 * all.length, 30);
  expect(late).toMatchObject({ asked: all.length, tried: all.slice(0, -1) });
});

test('a search alone begins at the recipe as it is given; one without weights is refused', async () => {
  const arithmetic: Recipe = {
    ...recipe,
    mergeMethod: 'task_arithmetic',
    models: ['a', 'b'].map((model) => ({ model, parameters: { weight: 1 } })),
  };
  const { report } = await run(benchOf(valley), { recipe: arithmetic, steps: ['search'] });
  expect(report.rows.map(({ id }) => id)).toEqual(['base', 'model a', 'model b', 'given', 'search']);
  expect(loss(report.rows.at(-1)!, 'choosing')).toBeLessThan(1.02);
  const ram: Recipe = {
    ...recipe,
    mergeMethod: 'ram',
    models: arithmetic.models!.map(({ model }) => ({ model, parameters: {} })),
    parameters: {},
  };
  await expect(run(benchOf(valley), { recipe: ram, steps: ['search'] })).rejects.toThrow(
    /neither weights nor λ/,
  );
  const { baseModel: _, ...baseless } = recipe;
  await expect(run(benchOf(valley), { recipe: baseless })).rejects.toMatchObject({ code: 'Usage' });
});

test('a search for a front reaches from the best on the one text to the best on the other, its rows on the Pareto front', async () => {
  // each text has its own floor: weights of 1 and 0, and of 0 and 1
  const texts = [
    [1, 0],
    [0, 1],
  ];
  const bench: BestBench = {
    ...benchOf(valley),
    measure: async (targets, parts) =>
      targets.map((target): Outcome => {
        const weights =
          'recipe' in target && target.recipe.mergeMethod === 'task_arithmetic'
            ? target.recipe.models!.map(
                (of) => Number(of.parameters.weight) * Number(target.recipe.parameters.lambda ?? 1),
              )
            : [3, 3];
        const own = texts.map((floor) => {
          const loss = 1 + floor.reduce((sum, at, i) => sum + (at - weights[i]!) ** 2, 0);
          return [0, 1].map(() => ({ loss: 64 * loss, tokens: 64 }));
        });
        return { blocks: Object.fromEntries(parts.map((part) => [part, own])) };
      }),
  };
  const arithmetic: Recipe = {
    ...recipe,
    mergeMethod: 'task_arithmetic',
    models: ['a', 'b'].map((model) => ({ model, parameters: { weight: 0.2 } })),
  };
  const { report } = await run(bench, { recipe: arithmetic, steps: ['search'], front: 3 });
  const searched = report.rows.filter(({ id }) => id.startsWith('front'));
  expect(searched.length).toBeGreaterThanOrEqual(2);
  for (const { from } of searched) expect(report.rows.map(({ id }) => id)).toContain(from);
  const front = frontOf(report.rows);
  const losses = front.map((row) => twoLosses(row, 'choosing')!);
  // where it begins both are 1.68, and between the floors 1.5
  expect(losses[0]![0]).toBeLessThan(1.1);
  expect(losses.at(-1)![1]).toBeLessThan(1.1);
  for (const [i, [a, b]] of losses.slice(1).entries()) {
    expect(a).toBeGreaterThan(losses[i]![0]);
    expect(b).toBeLessThan(losses[i]![1]);
  }
  for (const row of report.rows) {
    const own = twoLosses(row, 'choosing')!;
    const dominated = losses.some((of) => of[0] <= own[0] && of[1] <= own[1] && of.join() !== own.join());
    expect(front.includes(row), row.id).toBe(!dominated);
  }
  expect(front.length).toBeGreaterThanOrEqual(3);
});

test('a search that fits the tuning text alone is said to, one that holds elsewhere is not', async () => {
  const noisy: Loss = (target, part) => {
    const held = valley(target, 'tuning');
    // a gain from the second weight that the other parts do not have
    return 'recipe' in target && part === 'tuning'
      ? held - Number(target.recipe.models![1]!.parameters.weight ?? 0)
      : held;
  };
  const arithmetic: Recipe = {
    ...recipe,
    mergeMethod: 'task_arithmetic',
    models: ['a', 'b'].map((model) => ({ model, parameters: { weight: 1 } })),
  };
  const words = async (loss: Loss) => {
    vi.stubGlobal('navigator', fakeStorage().navigator);
    const { report } = await run(benchOf(loss, 0.001), { recipe: arithmetic, steps: ['search'] });
    return overfitWords(report.rows.find(({ id }) => id === 'search')!, report.rows, false);
  };
  expect(await words(noisy)).toMatch(
    /fits the text it was tuned on: there perplexity changed by −\d.* on other text by /,
  );
  expect(await words(valley)).toBeNull();
});
