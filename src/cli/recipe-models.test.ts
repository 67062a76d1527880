import { expect, test } from 'vitest';
import type { Recipe } from '../formats/recipe';
import { recipeRepositories, renameRepositories } from './recipe-models';

const recipe: Recipe = {
  mergeMethod: 'ties',
  baseModel: 'owner/base',
  models: [
    { model: 'owner/base+./adapter', parameters: { weight: 0.5 } },
    { model: 'owner/base@v1+owner/lora@main', parameters: {} },
  ],
  parameters: {},
  tokenizerSource: 'owner/base',
  amalgam: {},
};

test('every repository is named once, base first, adapters apart from their models', () => {
  expect(recipeRepositories(recipe)).toEqual(['owner/base', './adapter', 'owner/base@v1', 'owner/lora@main']);
  const slices: Recipe = {
    mergeMethod: 'passthrough',
    slices: [{ sources: [{ model: 'a', layerRange: [0, 1], parameters: {} }], parameters: {} }],
    parameters: {},
    tokenizerSource: 'union',
    amalgam: {},
  };
  expect(recipeRepositories(slices)).toEqual(['a']);
});

test('renaming pins exactly the repositories it is told to', () => {
  const renamed = new Map([
    ['owner/base', 'owner/base@aaa'],
    ['owner/lora@main', 'owner/lora@bbb'],
    ['./adapter', './adapter'],
  ]);
  expect(renameRepositories(recipe, renamed)).toEqual({
    ...recipe,
    baseModel: 'owner/base@aaa',
    models: [
      { model: 'owner/base@aaa+./adapter', parameters: { weight: 0.5 } },
      { model: 'owner/base@v1+owner/lora@bbb', parameters: {} },
    ],
    tokenizerSource: 'owner/base@aaa',
  });
  expect(renameRepositories({ ...recipe, tokenizerSource: 'base' }, renamed).tokenizerSource).toBe('base');
});
