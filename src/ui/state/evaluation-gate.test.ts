import { expect, test } from 'vitest';
import { sampleModels } from '../engine-fixture';
import { protocolProblem, whyNotMeasure, whyNotRun, whyNotWrite } from './evaluation-gate';
import type { RunFacts, StudioFacts } from './facts';
import { initialFacts } from './facts';
import { mergeGate } from './merge-gate';
import { sampleRecipe } from './models';

const ready: StudioFacts = {
  ...initialFacts,
  engine: { ...initialFacts.engine, status: 'ready' },
  models: sampleModels,
  recipe: sampleRecipe(sampleModels),
  evaluation: {
    ...initialFacts.evaluation,
    texts: [
      { id: 'own 1', name: 'a', text: 'a b', sha256: { quick: '1', full: '1' }, origin: 'own', chosen: true },
    ],
  },
};

test('open when the engine is free, there are models and a text', () => {
  expect(whyNotMeasure(ready)).toBeNull();
  expect(whyNotWrite(ready)).toBeNull();
});

test('one job at a time, and each says which', () => {
  const run = { status: 'running' } as RunFacts;
  expect(whyNotRun({ ...ready, run })).toMatch(/merge is running/);
  const writing: StudioFacts = { ...ready, generation: { ...ready.generation, status: 'writing' } };
  expect(whyNotMeasure(writing)).toMatch(/Writing/);
  expect(mergeGate(writing)).toMatchObject({ open: false, tone: 'wait', tab: 'evaluate' });
  const job = { groups: [], at: 0, progress: null, elapsed: 0, cancelling: false };
  const measuring: StudioFacts = { ...ready, evaluation: { ...ready.evaluation, job } };
  expect(whyNotWrite(measuring)).toMatch(/Measuring/);
  expect(mergeGate(measuring)).toMatchObject({ open: false, tone: 'wait', tab: 'evaluate' });
});

test('without models, texts or sensible numbers it says what is missing', () => {
  expect(whyNotMeasure({ ...ready, evaluation: initialFacts.evaluation })).toBe('Choose a text first.');
  expect(whyNotMeasure({ ...ready, recipe: initialFacts.recipe })).toMatch(/no models/);
  const prompt = { ...ready.generation, settings: { ...ready.generation.settings, prompt: ' ' } };
  expect(whyNotWrite({ ...ready, generation: prompt })).toMatch(/prompt/);
  expect(protocolProblem({ window: 256, stride: 256 })).toMatch(/below the window/);
  expect(protocolProblem({ window: 2, stride: 1 })).toBeNull();
});
