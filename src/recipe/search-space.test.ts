import { expect, test } from 'vitest';
import type { Recipe } from '../formats/recipe';
import { methodById } from '../merge/methods';
import { searchSpace } from './search-space';

const recipeOf = (weight: Recipe['parameters'][string], density: Recipe['parameters'][string]): Recipe => ({
  mergeMethod: 'ties',
  baseModel: 'base',
  models: [{ model: 'm', parameters: { weight, density } }],
  parameters: { normalize: false },
  amalgam: {},
});

test('of a Gram merge λ and the share of the sum are searched for', () => {
  const given: Recipe = {
    ...recipeOf(1, 1),
    mergeMethod: 'gram',
    parameters: { match: 'stream', lambda: 1.1 },
  };
  const space = searchSpace(given, methodById.get('gram')!)!;
  expect(space.values(space.start)).toEqual({ lambda: 1.1, sum: 0 });
  expect(space.recipe({ lambda: 0.9, sum: 0.1 }).parameters).toEqual({
    match: 'stream',
    lambda: 0.9,
    sum: 0.1,
  });
});

test('gradients and filters are scaled as they stand; the search begins at the recipe as given', () => {
  const shapes = [
    [0.5, 1],
    [{ filter: 'mlp', value: 0.5 }, { value: [0.2, 0.4] }],
  ] as const;
  for (const shape of shapes) {
    const given = recipeOf([...shape] as number[], [0.25, 0.5]);
    const space = searchSpace(given, methodById.get('ties')!)!;
    expect(space.recipe(space.values(space.start))).toEqual(given);
    const twice = space.recipe({ 'weight 1': 2, density: 3 }).models![0]!.parameters;
    expect(twice.weight).toEqual(
      shape === shapes[0] ? [1, 2] : [{ filter: 'mlp', value: 1 }, { value: [0.4, 0.8] }],
    );
    // no more than all
    expect(twice.density).toEqual([0.75, 1]);
  }
  const plain = searchSpace(recipeOf(0.5, 0.25), methodById.get('ties')!)!;
  expect(plain.recipe({ 'weight 1': 2, density: 0.3 }).models![0]!.parameters).toEqual({
    weight: 2,
    density: 0.3,
  });
});
