import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { Recipe } from '../formats/recipe';
import type { RunTarget } from '../reports/evaluate';
import type { BestRow, TextPart } from '../reports/find-best';
import { pairedDifference, verdict } from '../reports/paired-error';
import { fakeStorage } from '../store/opfs.test.fake';
import { benchOf, type Loss, loss, recipe, run, valley } from './find-best.test.support';

beforeEach(() => {
  vi.stubGlobal('navigator', fakeStorage().navigator);
});
afterEach(() => {
  vi.restoreAllMocks();
});

test('every method at its own λ, then the weights: the floor of the valley, every row told', async () => {
  const { report, told } = await run(benchOf(valley));
  expect(report.best).toBe('search');
  const best = report.rows.find(({ id }) => id === 'search')!;
  expect(loss(best, 'reporting')).toBeLessThan(1.02);
  expect(report).toMatchObject({ ended: 'converged', left: { methods: 0, gram: 0, search: 0 } });
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

test('what the winner keeps of the contributors’ gains is measured on the reporting text', async () => {
  const gained: Loss = (target, part) =>
    'model' in target ? (target.model === 'base' ? 4 : part === 'reporting' ? 2 : 3) : valley(target, part);
  const { report } = await run(benchOf(gained));
  const best = report.rows.find(({ id }) => id === report.best)!;
  const keeps = (4 - loss(best, 'reporting')) / (4 - 2);
  expect(report.kept).toEqual([expect.closeTo(keeps, 5), expect.closeTo(keeps, 5)]);
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
  // what was not tried is told, step by step
  const known = ({ rows, left }: typeof report) => rows.length + left.methods + left.gram;
  expect(report.left).toMatchObject({ gram: 3, search: 1 });
  expect(known(next)).toBe(known(report));
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
