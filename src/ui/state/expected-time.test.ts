import { describe, expect, test } from 'vitest';
import { methodById } from '../../merge/methods/index';
import type { WorkerInfo } from '../../reports/worker';
import { expectedSeconds } from '../screens/PlanSection';
import { sampleModels } from '../worker.test.fixture';
import { planFor } from '../worker-plan.test.fixture';
import { buildRecipe } from './built-recipe';
import { sampleRecipe } from './roles';
import type { FinishedRun } from './runs';
import { initialState, type StudioState } from './studio-state';

const recipe = sampleRecipe(sampleModels);
const asked = buildRecipe(recipe, sampleModels, methodById.get(recipe.method)!);
const plan = planFor(asked, 6, []);
const state: StudioState = {
  ...initialState,
  engine: {
    status: 'ready',
    info: { auto: 'cpu' } as unknown as WorkerInfo,
    error: null,
    choice: 'auto',
  },
  models: sampleModels,
  recipe,
  plan: { status: 'ready', report: plan, contributors: [], error: null },
};

/** A merge of so many times as many elements that took `seconds`. */
function run(seconds: number, times = 1, change: Partial<FinishedRun['report']> = {}): FinishedRun {
  return {
    status: 'done',
    planned: plan.tensors.map((t) => ({ ...t, elements: t.elements * times })),
    report: { recipe: asked, engine: 'cpu', seconds, ...change },
  } as unknown as FinishedRun;
}

const expected = (...runs: FinishedRun[]) => expectedSeconds({ ...state, runs });

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
        ...state,
        plan: { ...state.plan, report: { ...plan, clean: false } },
        runs: [run(12)],
      }),
    ).toBeNull();
  });
});
