import { expect, test } from 'vitest';
import type { Recipe } from '../../formats/recipe';
import { methodById } from '../../merge/methods/index';
import { runNames, shortNames } from './runs';

const run = (method: string, parameters: Recipe['parameters'] = {}, given: string | null = null) => ({
  recipe: {
    mergeMethod: method,
    parameters,
    models: [{ model: 'a', parameters: { density: 0.2 } }],
  } as unknown as Recipe,
  method: methodById.get(method)!,
  given,
});

test('a run is named by what tells it from the others, and by no setting without effect', () => {
  expect(runNames([run('ties'), run('task_arithmetic')])).toEqual(['TIES · 0.20', 'Task arithmetic']);
  expect(runNames([run('task_arithmetic', { lambda: 0.5 }), run('task_arithmetic', { lambda: 1 })])).toEqual([
    'Task arithmetic · λ 0.50',
    'Task arithmetic · λ 1.00',
  ]);
  expect(runNames([run('ties', {}, 'first try'), run('ties')])).toEqual(['first try', 'TIES · 0.20']);
});

test('of contributors only those are named whose setting differs', () => {
  const weighted = (...weights: number[]) => {
    const models = weights.map((weight, i) => ({
      model: `base+loras/${'abc'[i]}`,
      parameters: { weight, density: 0.2 },
    }));
    const { recipe, ...rest } = run('ties');
    return { ...rest, recipe: { ...recipe, models } };
  };
  const names = runNames([weighted(0.5, 1, 1), weighted(1, 1, 1), weighted(0.5, 1, 0.8)]);
  expect(names).toEqual(['TIES · weight a 0.50 c 1.00', 'TIES · weight 1.00', 'TIES · weight a 0.50 c 0.80']);
  // all share it: it tells none apart
  expect(names.join()).not.toContain('0.20');
});

test('over a chart, what all names begin with is left out', () => {
  expect(shortNames(['Task arithmetic · λ 0.50', 'Task arithmetic · λ 1.00'])).toEqual(['λ 0.50', 'λ 1.00']);
  expect(shortNames(['TIES · 0.20', 'Task arithmetic'])).toEqual(['TIES · 0.20', 'Task arithmetic']);
  expect(shortNames(['TIES', 'TIES · 0.20'])).toEqual(['TIES', 'TIES · 0.20']);
  expect(shortNames(['TIES · 0.20', 'TIES · 0.20'])).toEqual(['0.20', '0.20']);
  expect(shortNames(['TIES · 0.20'])).toEqual(['TIES · 0.20']);
});
