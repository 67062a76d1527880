import { expect, test } from 'vitest';
import { sampleModels } from '../worker.test.fixture';
import { pairOf } from './model-choices';
import { sampleRecipe } from './roles';
import { initialState } from './studio-state';

const facts = {
  models: sampleModels,
  recipe: sampleRecipe(sampleModels),
  tools: initialState.tools,
};

test('the recipe suggests its base and the last model made from it; what is chosen stays', () => {
  expect(pairOf(facts)).toEqual({ base: 'samples/base', finetuned: 'samples/workshop' });
  const chosen = (models: Partial<typeof facts.tools.models>) => ({
    ...facts,
    tools: { ...facts.tools, models: { ...facts.tools.models, ...models } },
  });
  expect(pairOf(chosen({ finetuned: 'samples/base+samples/harbour' })).finetuned).toBe(
    'samples/base+samples/harbour',
  );
  expect(pairOf(chosen({ base: 'no/longer-open' })).base).toBe('samples/base');
  expect(pairOf({ ...facts, models: [] })).toEqual({ base: null, finetuned: null });
});
