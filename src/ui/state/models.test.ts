import { expect, test } from 'vitest';
import { fixtureWorker, sampleModels } from '../worker.test.fixture';
import { addFiles, openSample, takeModel, whyNotAdd } from './models';
import { setEnabled } from './recipe-state';
import { sampleRecipe } from './roles';
import { createStudio, editRecipe } from './studio';

const dropped = {
  files: [{ path: 'mine/config.json', file: new File(['{}'], 'config.json') }],
  handles: [],
};

test('the sample is a merge of everything on its base, once; a recipe begun stays as it is', async () => {
  const studio = createStudio(fixtureWorker());
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

test('a dropped checkpoint takes the place of an untouched sample; of one that was edited it is a contributor', async () => {
  const studio = createStudio(fixtureWorker());
  await openSample(studio, true);
  await addFiles(studio, dropped);
  const { recipe, notices, opening } = studio.store.getState();
  expect(recipe).toMatchObject({ base: 'mine', contributors: [] });
  expect(notices[0]?.message).toContain('mine');
  expect(opening).toEqual([]);
  const second = createStudio(fixtureWorker());
  await openSample(second, true);
  editRecipe(second, (r) => setEnabled(r, 'samples/workshop', false));
  await addFiles(second, dropped);
  expect(second.store.getState().recipe.contributors.at(-1)?.ref).toBe('mine');
});

test('a dropped YAML file opens as the recipe, one that is none says so at its line', async () => {
  const studio = createStudio(fixtureWorker());
  const drop = (text: string) =>
    addFiles(studio, { files: [{ path: 'mine.yml', file: new File([text], 'mine.yml') }], handles: [] });
  await drop('merge_method: linear\nmodels:\n  - model: a\n    parameters: { weight: 1 }\n');
  expect(studio.store.getState().recipe).toMatchObject({ method: 'linear', contributors: [{ ref: 'a' }] });
  await drop('merge_method: linear\nt: 1\n');
  expect(studio.store.getState().notices.at(-1)).toMatchObject({
    tone: 'error',
    message: expect.stringMatching(/mine\.yml is not a recipe: line 2/),
  });
  expect(studio.store.getState().recipe.contributors).toHaveLength(1);
});

test('files picked one by one are a folder named by their weights', async () => {
  const worker = fixtureWorker();
  const studio = createStudio(worker);
  const pick = (...names: string[]) =>
    addFiles(studio, { files: names.map((path) => ({ path, file: new File([], path) })), handles: [] });
  await pick('kitchen.safetensors', 'adapter_config.json');
  await pick('model.safetensors', 'config.json');
  await pick('model.safetensors', 'config.json');
  expect(studio.store.getState().models.map((m) => m.ref)).toEqual(['kitchen', 'files', 'files-2']);
});

test('why a model cannot be added', () => {
  const recipe = sampleRecipe(sampleModels);
  const [base, kitchen, , workshop] = sampleModels;
  expect(whyNotAdd(recipe, base!, 'contributor')).toMatch(/the base/);
  expect(whyNotAdd(recipe, kitchen!, 'base')).toMatch(/adapter/);
  expect(whyNotAdd(recipe, workshop!, 'contributor')).toMatch(/Already/);
  expect(whyNotAdd(recipe, workshop!, 'base')).toBeNull();
});
