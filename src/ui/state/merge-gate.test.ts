import { expect, test } from 'vitest';
import { methodById } from '../../merge/methods/index';
import type { PlanProblem } from '../../reports/plan';
import { sampleModels, workerInfo } from '../worker.test.fixture';
import { planFor } from '../worker-plan.test.fixture';
import { buildRecipe } from './built-recipe';
import { mergeGate } from './merge-gate';
import { sampleRecipe } from './roles';
import { initialState, type StudioState } from './studio';

const recipe = sampleRecipe(sampleModels);
const problem: PlanProblem = { severity: 'error', code: 'X', message: 'wrong', remedy: 'mend it' };
const plan = (problems: PlanProblem[] = []) =>
  planFor(buildRecipe(recipe, sampleModels, methodById.get('ties')!), 6, problems);
const ready: StudioState = {
  ...initialState,
  engine: { status: 'ready', info: workerInfo, error: null, choice: 'auto' },
  models: sampleModels,
  recipe,
  plan: { status: 'ready', report: plan(), contributors: [], error: null },
};

test('open when engine, recipe and plan are ready; warnings do not close it', () => {
  expect(mergeGate(ready)).toEqual({ open: true });
  const warned = plan([{ ...problem, severity: 'warning' }]);
  expect(mergeGate({ ...ready, plan: { ...ready.plan, report: warned } }).open).toBe(true);
});

test('open while an edit is being planned: the click plans first', () => {
  const errors = plan([problem]);
  expect(mergeGate({ ...ready, plan: { ...ready.plan, status: 'stale', report: errors } }).open).toBe(true);
});

test.each<[string, Partial<StudioState>, RegExp]>([
  ['the engine starts', { engine: { ...ready.engine, status: 'starting', info: null } }, /Starting/],
  ['the engine failed', { engine: { ...ready.engine, status: 'failed', info: null } }, /did not start/],
  ['the engine stopped', { engine: { ...ready.engine, status: 'failed' } }, /stopped/],
  ['a model of the recipe is opened', { models: ready.models.slice(1) }, /Opening base/],
  [
    'a model of the recipe is not open',
    { models: ready.models.slice(1), unopened: { 'samples/base': { state: 'closed', saved: false } } },
    /base is not open/,
  ],
  ['there is no base', { recipe: { ...recipe, base: null } }, /base/],
  ['there is no contributor', { recipe: { ...recipe, contributors: [] } }, /contributor/],
  ['the plan has errors', { plan: { ...ready.plan, report: plan([problem]) } }, /1.error/],
  ['there is no plan yet', { plan: { ...ready.plan, status: 'stale', report: null } }, /Planning/],
  [
    'there is nowhere to keep downloads',
    {
      engine: { ...ready.engine, info: { ...workerInfo, storage: { available: false } } },
    },
    /storage/,
  ],
])('closed when %s, and says so', (_, change, why) => {
  const gate = mergeGate({ ...ready, ...change });
  expect(gate.open ? 'open' : gate.why).toMatch(why);
});

test('open while a model is opened that the recipe does not name', () => {
  expect(mergeGate({ ...ready, opening: ['org/name'] }).open).toBe(true);
});

test('R36: a merge that fits into memory runs where the browser keeps nothing, a larger one says what fits', () => {
  const gate = (memoryBytes: number) =>
    mergeGate({
      ...ready,
      engine: { ...ready.engine, info: { ...workerInfo, storage: { available: true, memoryBytes } } },
    });
  const { bytesToDownload, bytesToWrite } = ready.plan.report!;
  expect(gate(bytesToDownload + bytesToWrite)).toEqual({ open: true });
  expect(gate(bytesToDownload + bytesToWrite - 1)).toMatchObject({
    open: false,
    why: expect.stringMatching(/fit into memory/),
  });
});

test('without storage a folder still works', () => {
  const info = { ...workerInfo, storage: { available: false } };
  const folder: StudioState = {
    ...ready,
    engine: { ...ready.engine, info },
    output: { kind: 'folder', folder: null, name: null, streams: false },
  };
  expect(mergeGate(folder).open).toBe(true);
});
