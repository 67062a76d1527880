import { expect, test } from 'vitest';
import type { MeasureDepthReport } from '../../reports/collapse';
import { initialCollapse } from './collapse-state';
import { choicesProblem, goingLayers, layerWords, plannerOf, variantOf } from './planning';

const map = [
  [0, 0.3, 0.32, 0.34, 0.5],
  [0.3, 0, 0.1, 0.15, 0.4],
  [0.32, 0.1, 0, 0.05, 0.3],
  [0.34, 0.15, 0.05, 0, 0.2],
  [0.5, 0.4, 0.3, 0.2, 0],
];
const survey: MeasureDepthReport = {
  ...{ model: 'm', engine: 'cpu', adapter: '', seconds: 1, layers: 4, influence: [0.1, 0.3, 0.2, 0.4] },
  distance: { lastToken: map, allTokens: map },
  calibration: { sequences: 1, tokens: 99, window: 256 },
};

test('the layers that would go are known once the model was measured, or chosen by hand', () => {
  expect(goingLayers(initialCollapse, null)).toBeNull();
  expect(goingLayers({ ...initialCollapse, remove: 2 }, survey)).toEqual({ layers: [0, 2] });
  // what is taken in needs a layer before it
  expect(goingLayers({ ...initialCollapse, remove: 2, variant: 'mean' }, survey)).toEqual({ layers: [1, 2] });
  expect(goingLayers({ ...initialCollapse, planner: 'angular' }, survey)).toEqual({ layers: [2] });
  expect(goingLayers({ ...initialCollapse, targetBy: 'threshold', influence: 0.05 }, survey)).toEqual({
    layers: [],
  });
  expect(goingLayers({ ...initialCollapse, targetBy: 'threshold', influence: 1 }, survey)).toMatchObject({
    why: expect.stringContaining('all would go'),
  });
  expect(goingLayers({ ...initialCollapse, planner: 'manual', manual: [3, 1] }, null)).toEqual({
    layers: [1, 3],
  });
  expect(goingLayers({ ...initialCollapse, planner: 'laco' }, survey)).toBeNull();
});

test('choices that cannot be meant say why', () => {
  const problem = (change: Partial<typeof initialCollapse>) =>
    choicesProblem({ ...initialCollapse, ...change }, 4);
  expect(problem({})).toBeNull();
  expect(problem({ remove: 4 })).toMatch(/Cannot remove 4 layers of 4/);
  expect(problem({ targetBy: 'ratio', ratio: 0.1 })).toMatch(/less than half a layer/);
  expect(problem({ targetBy: 'threshold', influence: 0 })).toMatch(/above 0/);
  expect(problem({ planner: 'manual' })).toMatch(/Choose layers/);
  expect(problem({ planner: 'manual', manual: [0], variant: 'rdsc' })).toMatch(/no layer before it/);
  expect(problem({ planner: 'laco', laco: { ...initialCollapse.laco, lowest: 2 } })).toMatch(
    /room for a block/,
  );
  expect(choicesProblem(initialCollapse, 1)).toMatch(/nothing to do/);
});

test('choices become the planner of the request; the variant suits it', () => {
  expect(plannerOf({ ...initialCollapse, planner: 'laco' })).toEqual({
    ...{ kind: 'laco', block: 3, interval: 2, threshold: 0.75, lowest: 0, target: { remove: 1 } },
  });
  expect(plannerOf({ ...initialCollapse, planner: 'angular', targetBy: 'threshold' })).toEqual({
    ...{ kind: 'angular', target: { threshold: 0.1 }, tokens: 'last' },
  });
  expect([variantOf(initialCollapse), variantOf({ ...initialCollapse, planner: 'laco' })]).toEqual([
    'drop',
    'rdsc',
  ]);
});

test('layers in words', () => {
  expect(layerWords([1, 3, 4, 5, 9])).toBe('1, 3 to 5 and 9');
});
