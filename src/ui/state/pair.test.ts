import { expect, test } from 'vitest';
import { sampleRecipe } from './roles';
import { initialState } from './studio-state';
import { sampleModels } from '../worker.test.fixture';
import { pairOf } from './pair';

const facts = {
  models: sampleModels,
  recipe: sampleRecipe(sampleModels),
  comparison: initialState.comparison,
};

test('the recipe suggests its base and the last model made from it; what is chosen stays', () => {
  expect(pairOf(facts)).toEqual({ base: 'samples/base', finetuned: 'samples/workshop' });
  const comparison = { ...facts.comparison, finetuned: 'samples/base+samples/harbour' };
  expect(pairOf({ ...facts, comparison }).finetuned).toBe('samples/base+samples/harbour');
  const gone = { ...facts.comparison, base: 'no/longer-open' };
  expect(pairOf({ ...facts, comparison: gone }).base).toBe('samples/base');
  expect(pairOf({ ...facts, models: [] })).toEqual({ base: null, finetuned: null });
});
