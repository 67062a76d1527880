import { expect, test } from 'vitest';
import { fixtureEngine, sampleModels } from '../engine-fixture';
import { addDropped, openSample, sampleRecipe, takeModel, whyNotAdd } from './models';
import { createStudio } from './studio';

const dropped = {
  files: [{ path: 'mine/config.json', file: new File(['{}'], 'config.json') }],
  handles: [],
};

test('the sample is a merge of everything on its base, once; a recipe begun stays as it is', async () => {
  const studio = createStudio(fixtureEngine());
  await openSample(studio, true);
  const { recipe } = studio.store.getState();
  expect({ ...recipe, origins: {} }).toEqual(sampleRecipe(sampleModels));
  expect(Object.values(recipe.origins)).toEqual(Array(4).fill({ kind: 'sample' }));
  expect(recipe.base).toBe('samples/base');
  expect(recipe.contributors.map((c) => c.ref)).toEqual([
    'samples/kitchen',
    'samples/harbour',
    'samples/workshop',
  ]);
  takeModel(studio, 'samples/workshop', 'base');
  await openSample(studio, true);
  expect(studio.store.getState().recipe.base).toBe('samples/workshop');
  expect(studio.store.getState().models).toHaveLength(4);
});

test('a dropped checkpoint is the base where there is none, else a contributor', async () => {
  const studio = createStudio(fixtureEngine());
  await addDropped(studio, dropped);
  expect(studio.store.getState().recipe.base).toBe('mine');
  const second = createStudio(fixtureEngine());
  await openSample(second, true);
  await addDropped(second, dropped);
  expect(second.store.getState().recipe.contributors.at(-1)?.ref).toBe('mine');
  expect(second.store.getState().notices[0]?.message).toContain('mine');
  expect(second.store.getState().opening).toEqual([]);
});

test('files without a model are said to be so', async () => {
  const studio = createStudio({ ...fixtureEngine(), openLocal: async () => [] });
  await addDropped(studio, dropped);
  expect(studio.store.getState().notices[0]?.message).toMatch(/No model/);
});

test('why a model cannot be added', () => {
  const recipe = sampleRecipe(sampleModels);
  const [base, kitchen, , workshop] = sampleModels;
  expect(whyNotAdd(recipe, base!, 'contributor')).toMatch(/the base/);
  expect(whyNotAdd(recipe, kitchen!, 'base')).toMatch(/adapter/);
  expect(whyNotAdd(recipe, workshop!, 'contributor')).toMatch(/Already/);
  expect(whyNotAdd(recipe, workshop!, 'base')).toBeNull();
});
