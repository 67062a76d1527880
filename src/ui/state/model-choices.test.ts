import { expect, test } from 'vitest';
import { sampleModels } from '../worker.test.fixture';
import { choiceName, chosenModel, fileNameOf, modelChoices, pairOf, sampleRecipe } from './roles';
import { initialState } from './studio-state';

const recipe = sampleRecipe(sampleModels);
const state = { models: sampleModels, recipe };

test('checkpoints and adapters on their base can be chosen', () => {
  expect(modelChoices(state).map((c) => [c.ref, c.label])).toEqual([
    ['samples/base', 'base'],
    ['samples/workshop', 'workshop'],
    ['samples/base+samples/kitchen', 'base + kitchen'],
    ['samples/base+samples/harbour', 'base + harbour'],
  ]);
});

test('models of one name are told apart by their whole reference', () => {
  const others = ['a/model@1234', 'b/model@5678'].map((ref) => ({ ...sampleModels[0]!, ref }));
  expect(modelChoices({ models: others, recipe }).map((c) => c.label)).toEqual(others.map((m) => m.ref));
});

test('names of files have no blanks and no revisions', () => {
  expect(choiceName('owner/model@0123abcd+owner/lora')).toBe('model + lora');
  expect(fileNameOf('compare', 'samples/base', 'owner/model@01+x/lora')).toBe('compare-base-model-lora');
});

test('a tool of one model is given the chosen one, else the base of the recipe, else any', () => {
  const chosen = 'samples/workshop+samples/kitchen';
  expect(chosenModel(state, chosen)).toBe(chosen);
  expect(chosenModel(state, 'no/longer-open')).toBe('samples/base');
  const unnamed = { ...recipe, base: null };
  expect(chosenModel({ ...state, recipe: unnamed }, null)).toBe('samples/base');
  expect(chosenModel({ models: [], recipe }, chosen)).toBeNull();
});

const pair = { ...state, tools: initialState.tools };

test('the recipe suggests its base and the last model made from it; what is chosen stays', () => {
  expect(pairOf(pair)).toEqual({ base: 'samples/base', finetuned: 'samples/workshop' });
  const chosen = (models: Partial<typeof pair.tools.models>) => ({
    ...pair,
    tools: { ...pair.tools, models: { ...pair.tools.models, ...models } },
  });
  expect(pairOf(chosen({ finetuned: 'samples/base+samples/harbour' })).finetuned).toBe(
    'samples/base+samples/harbour',
  );
  expect(pairOf(chosen({ base: 'no/longer-open' })).base).toBe('samples/base');
  expect(pairOf({ ...pair, models: [] })).toEqual({ base: null, finetuned: null });
});
