import { expect, test } from 'vitest';
import { sampleRecipe } from '../state/roles';
import { initialState } from '../state/studio-state';
import { sampleModels } from '../worker.test.fixture';
import { pairChoices, pairName, pairOf, sideName } from './pair-choices';

const recipe = sampleRecipe(sampleModels);
const facts = { models: sampleModels, recipe, comparison: initialState.comparison };

test('checkpoints and adapters on their base can be compared', () => {
  expect(pairChoices(facts).map((c) => [c.ref, c.label])).toEqual([
    ['samples/base', 'base'],
    ['samples/workshop', 'workshop'],
    ['samples/base+samples/kitchen', 'base + kitchen'],
    ['samples/base+samples/harbour', 'base + harbour'],
  ]);
});

test('models of one name are told apart by their whole reference', () => {
  const others = ['a/model@1234', 'b/model@5678'].map((ref) => ({ ...sampleModels[0]!, ref }));
  expect(pairChoices({ models: others, recipe }).map((c) => c.label)).toEqual(others.map((m) => m.ref));
});

test('the recipe suggests its base and the last model made from it; what is chosen stays', () => {
  expect(pairOf(facts)).toEqual({ base: 'samples/base', finetuned: 'samples/workshop' });
  const comparison = { ...facts.comparison, finetuned: 'samples/base+samples/harbour' };
  expect(pairOf({ ...facts, comparison }).finetuned).toBe('samples/base+samples/harbour');
  const gone = { ...facts.comparison, base: 'no/longer-open' };
  expect(pairOf({ ...facts, comparison: gone }).base).toBe('samples/base');
  expect(pairOf({ ...facts, models: [] })).toEqual({ base: null, finetuned: null });
});

test('names of files have no blanks and no revisions', () => {
  expect(sideName('owner/model@0123abcd+owner/lora')).toBe('model + lora');
  expect(pairName('compare', 'samples/base', 'owner/model@01+x/lora')).toBe('compare-base-model-lora');
});
