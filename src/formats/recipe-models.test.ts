import { expect, test } from 'vitest';
import type { Recipe } from './recipe';
import {
  recipeModels,
  recipeRepositories,
  renameRepositories,
  repositoriesRead,
  stagesNamed,
} from './recipe-models';
import { parseRecipe } from './recipe-yaml';

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

test('the name of a stage is no model: it is neither looked up nor renamed', () => {
  const staged: Recipe = {
    name: 'last',
    mergeMethod: 'linear',
    models: [
      { model: 'first', parameters: {} },
      { model: 'first+./adapter', parameters: {} },
      { model: 'owner/other', parameters: {} },
    ],
    parameters: {},
    amalgam: {},
    stages: [{ ...recipe, name: 'first' }],
  };
  expect(recipeRepositories(staged)).toEqual([
    'owner/base',
    './adapter',
    'owner/base@v1',
    'owner/lora@main',
    'owner/other',
  ]);
  expect(recipeModels(staged)).toEqual([
    'owner/base',
    'owner/base+./adapter',
    'owner/base@v1+owner/lora@main',
    'owner/other',
  ]);
  expect(stagesNamed(staged, new Set(['first', 'unused']))).toEqual(['first']);
  const renamed = renameRepositories(
    staged,
    new Map([
      ['first', 'wrong'],
      ['owner/base', 'owner/base@aaa'],
      ['./adapter', './b'],
    ]),
  );
  expect(renamed.models?.map((m) => m.model)).toEqual(['first', 'first+./b', 'owner/other']);
  expect(renamed.stages?.[0]?.baseModel).toBe('owner/base@aaa');
  expect(staged.stages?.[0]?.baseModel).toBe('owner/base');
});

test('LoRAs that become a LoRA are read without their base, unless its config is needed', () => {
  const read = (more: string, last = 'b+y') =>
    repositoriesRead(
      parseRecipe(
        `merge_method: task_arithmetic\nbase_model: b\nmodels: [{model: b+x}, {model: ${last}}]\namalgam: {output: adapter${more}}\n`,
      ).recipe!,
    );
  expect(read('')).toEqual(['x', 'y']);
  expect(read(', gguf: F16')).toEqual(['b', 'x', 'y']);
  // what may be a whole model may have to be cut
  expect(read('', 'y')).toEqual(['b', 'x', 'y']);
  expect(read(', combination: cat', 'y')).toEqual(['x', 'y']);
  expect(read(', combination: merged_svd')).toEqual(['b', 'x', 'y']);
  expect(read(', energy: 0.9')).toEqual(['b', 'x', 'y']);
});
