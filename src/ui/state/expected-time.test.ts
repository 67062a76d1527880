import { describe, expect, test } from 'vitest';
import { methodById } from '../../merge/methods/index';
import type { WorkerFacts } from '../../reports/worker';
import { sampleModels } from '../engine-fixture';
import { planFor } from '../engine-fixture-plan';
import { expectedSeconds } from './expected-time';
import { initialFacts, type StudioFacts } from './facts';
import { buildRecipe } from './recipe-build';
import { sampleRecipe } from './roles';
import type { KeptRun } from './run-facts';

const recipe = sampleRecipe(sampleModels);
const asked = buildRecipe(recipe, sampleModels, methodById.get('ties')!);
const plan = planFor(asked, 6, []);
const facts: StudioFacts = {
  ...initialFacts,
  engine: {
    status: 'ready',
    facts: { auto: 'cpu' } as unknown as WorkerFacts,
    error: null,
    choice: 'auto',
  },
  models: sampleModels,
  recipe,
  plan: { status: 'ready', facts: plan, contributors: [], error: null },
};

/** A merge of so many times as many elements that took `seconds`. */
function run(seconds: number, times = 1, change: Partial<KeptRun['report']> = {}): KeptRun {
  return {
    planned: plan.tensors.map((t) => ({ ...t, elements: t.elements * times })),
    report: { recipe: asked, engine: 'cpu', seconds, ...change },
  } as unknown as KeptRun;
}

const expected = (...pastRuns: KeptRun[]) => expectedSeconds({ ...facts, pastRuns });

describe('the time a merge will take', () => {
  test('grows with elements and contributors, by the merge nearest in size', () => {
    expect(expected(run(12))).toBeCloseTo(12);
    expect(expected(run(12, 3))).toBeCloseTo(4);
    expect(expected(run(30, 3), run(5, 0.9), run(8, 0.1))).toBeCloseTo(5 / 0.9);
  });

  test('is not known without a merge of this kind and about this size', () => {
    expect(expected()).toBeNull();
    expect(expected(run(12, 0.01))).toBeNull();
    expect(expected(run(12, 1, { engine: 'webgpu' }))).toBeNull();
    expect(expected(run(12, 1, { recipe: { ...asked, mergeMethod: 'linear' } }))).toBeNull();
    const searched = { ...asked, parameters: { ...asked.parameters, lambda: 'auto' } };
    expect(expected(run(12, 1, { recipe: searched }))).toBeNull();
    expect(
      expectedSeconds({
        ...facts,
        plan: { ...facts.plan, facts: { ...plan, clean: false } },
        pastRuns: [run(12)],
      }),
    ).toBeNull();
  });
});
