import { beforeEach, expect, test, vi } from 'vitest';
import { fixtureWorker, sampleModels } from '../worker.test.fixture';
import { sampleRecipe } from './roles';
import { bestCandidate, startSearch, takeCandidate, variableTitle, whyNotSearch, withValues } from './search';
import { createStudio } from './studio';
import { initialState } from './studio-state';

// the page asks before it closes while a search runs
beforeEach(() => {
  vi.stubGlobal('addEventListener', () => undefined);
  vi.stubGlobal('removeEventListener', () => undefined);
  vi.stubGlobal('navigator', {});
});

const recipe = sampleRecipe(sampleModels);
const text = {
  id: 'own 1',
  name: 'a',
  text: 'a b',
  sha256: { quick: '1', full: '1' },
  origin: 'own' as const,
  chosen: true,
};

function open() {
  const studio = createStudio(fixtureWorker());
  studio.store.setState({
    engine: { ...initialState.engine, status: 'ready' },
    models: sampleModels,
    recipe,
    evaluation: { ...initialState.evaluation, texts: [text] },
  });
  return studio;
}

test('candidates arrive as they are measured, and the best goes into the recipe', async () => {
  const studio = open();
  await startSearch(studio, { by: 'perplexity', evaluations: 20, seed: 3 });
  const { search } = studio.store.getState().evaluation;
  expect(search!.points).toHaveLength(20);
  expect(studio.store.getState().job).toBeNull();
  const best = search!.points[bestCandidate(search!)]!;
  expect(best.perplexity).toBe(Math.min(...search!.points.map((p) => p.perplexity!)));
  takeCandidate(studio, search!, best);
  expect(studio.store.getState().recipe.contributors.map((c) => c.parameters.weight)).toEqual(
    Object.values(best.values),
  );
});

test('by accuracy: the chosen tasks go with it, and of equal accuracies the surer one is the best', async () => {
  const studio = open();
  const state = studio.store.getState();
  const { tasks } = state;
  const choices = { by: 'accuracy', evaluations: 60, seed: 1 } as const;
  expect(whyNotSearch({ ...state, tasks: { ...tasks, chosen: [] } }, choices)).toBe('Choose a task first.');
  studio.store.setState({ tasks: { ...tasks, chosen: ['sample_trades'], limit: 12 } });
  const asked = vi.spyOn(studio.worker, 'search');
  await startSearch(studio, choices);
  expect(asked.mock.calls[0]![0]).toMatchObject({
    inputs: [],
    tasks: { tasks: [{ name: 'sample_trades' }], limit: 12, metric: 'acc' },
    evaluations: 60,
  });
  const { search } = studio.store.getState().evaluation;
  const scores = search!.points.map(({ score }) => score!);
  const best = scores[bestCandidate(search!)]!;
  expect(best.value).toBe(Math.max(...scores.map(({ value }) => value)));
  const equal = scores.filter(({ value }) => value === best.value);
  expect(equal.length).toBeGreaterThan(1);
  expect(best.rightLogShare).toBe(Math.max(...equal.map(({ rightLogShare }) => rightLogShare)));
});

test('stopped, it keeps what it measured', async () => {
  const studio = open();
  studio.store.subscribe(({ evaluation }) => {
    if ((evaluation.search?.points.length ?? 0) >= 6) void studio.worker.cancel();
  });
  await startSearch(studio, { by: 'perplexity', evaluations: 600, seed: 0 });
  const { search } = studio.store.getState().evaluation;
  expect(search!.points.length).toBeGreaterThanOrEqual(6);
  expect(search!.points.length).toBeLessThan(600);
  expect(search!.error).toBeNull();
});

test('values go to the contributors that are merged; λ beside weights is 1 once it was left open', () => {
  const [first, ...others] = recipe.contributors;
  const some = {
    ...recipe,
    parameters: { ...recipe.parameters, lambda: 'auto' },
    contributors: [{ ...first!, enabled: false }, ...others],
  };
  const made = withValues(some, { 'weight 1': 0.4, density: 0.3 });
  expect(made.parameters.lambda).toBe(1);
  expect(made.contributors[0]!.parameters).toEqual(first!.parameters);
  expect(made.contributors[1]!.parameters).toMatchObject({ weight: 0.4, density: 0.3 });
  expect(withValues(some, { lambda: 0.7 }).parameters.lambda).toBe(0.7);
});

test('weights are called by their models', () => {
  expect(variableTitle(recipe, 'weight 3')).toBe('weight of workshop');
  expect(['lambda', 'density'].map((name) => variableTitle(recipe, name))).toEqual(['λ', 'density']);
});

test('says why it cannot begin', () => {
  const state = open().store.getState();
  expect(whyNotSearch(state, { by: 'perplexity', evaluations: 60, seed: 0 })).toBeNull();
  expect(whyNotSearch(state, { by: 'perplexity', evaluations: 1, seed: 0 })).toMatch(/from 2/);
  expect(
    whyNotSearch(
      { ...state, evaluation: initialState.evaluation },
      { by: 'perplexity', evaluations: 60, seed: 0 },
    ),
  ).toBe('Choose a text first.');
});
