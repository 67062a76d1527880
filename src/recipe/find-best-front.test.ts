import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { Recipe } from '../formats/recipe';
import { type BestRow, frontOf, overfitWords, twoLosses } from '../reports/find-best';
import { fakeStorage } from '../store/opfs.test.fake';
import { reportedOf } from './candidates';
import { benchOf, type Loss, recipe, run, valley } from './find-best.test.support';
import type { BestBench, Outcome } from './measured-targets';

beforeEach(() => {
  vi.stubGlobal('navigator', fakeStorage().navigator);
});
afterEach(() => {
  vi.restoreAllMocks();
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

test('merges that were compared on more text are beside others on what both have read, whatever the rest is like', () => {
  const merge = (id: string, first: [number, number], ...rest: number[]): BestRow => ({
    ...{ id, kind: 'method', label: id, target: { recipe }, lambda: null, tried: 1, seconds: 0 },
    blocks: {
      ...{ tuning: null, reporting: null },
      choosing: first.map((loss) => [loss, ...rest].map((each) => ({ loss: 64 * each, tokens: 64 }))),
    },
  });
  const [better, other, worse] = [merge('a', [1, 2], 9), merge('b', [1.1, 2.1], 9), merge('c', [1.5, 2.5])];
  const rows = [worse, other, better];
  expect(frontOf(rows)).toEqual([better]);
  expect(reportedOf(rows, other, false)).toEqual({ first: [other, better], others: [] });
});
