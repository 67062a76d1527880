import { expect, test } from 'vitest';
import type { Recipe } from '../formats/recipe';
import type { Progress } from '../reports/job';
import { overallProgress } from './overall-progress';
import { candidateRecipes, gainShares, overlapOf, withLambdaFound, workSteps } from './recommendation-job';

const recipe: Recipe = {
  mergeMethod: 'ties',
  baseModel: 'base',
  models: [
    { model: 'a', parameters: { weight: 0.3, density: 0.2, calibration: 'a.txt' } },
    { model: 'b', parameters: { weight: 0.7 } },
  ],
  parameters: { normalize: true, calibration_windows: 16, calibration_window: 64 },
  amalgam: { seed: 7 },
};

test('candidates keep models, texts and seed, and leave the settings of the method behind', () => {
  const candidates = candidateRecipes(recipe);
  expect(candidates.map(({ recipe: r }) => [r.mergeMethod, r.parameters.match])).toEqual([
    ['gram', 'outputs'],
    ['gram', undefined],
    ['gram', 'changes'],
    ['task_arithmetic', undefined],
  ]);
  for (const { recipe: r } of candidates) {
    const { match: _, ...parameters } = r.parameters;
    expect(parameters).toEqual({ lambda: 'auto', calibration_windows: 16, calibration_window: 64 });
    expect(r.amalgam).toEqual({ seed: 7 });
    expect(r.models!.map(({ model, parameters: p }) => [model, p.calibration, p.density])).toEqual([
      ['a', 'a.txt', undefined],
      ['b', undefined, undefined],
    ]);
  }
});

test('with the λ that was found, only what still means something stays', () => {
  const found = candidateRecipes(recipe).map(({ recipe: r }) => withLambdaFound(r, 0.6));
  expect(found[3]!.parameters).toEqual({ lambda: 0.6 });
  expect(found[3]!.models).toEqual(['a', 'b'].map((model) => ({ model, parameters: { weight: 1 } })));
  expect(found[1]!.parameters).toEqual({ lambda: 0.6, calibration_windows: 16, calibration_window: 64 });
  expect(found[1]!.models![0]!.parameters.calibration).toBe('a.txt');
});

const texts = ['a', 'b'].map((id) => ({ id, calibration: '', tokens: 1 }));

test('the gain that is kept, and the gain that another has too', () => {
  const around = {
    texts,
    base: [4, 3],
    contributors: [
      { id: 'a', losses: [2, 2.5] },
      { id: 'b', losses: [4.5, 1] },
    ],
  };
  expect(gainShares(around, [2.5, 1.5])).toEqual([0.75, 0.75]);
  // a has 0.5 of the 2 that b gains on its text; b is worse than the base on the text of a
  expect(overlapOf(around)).toBe(0.25);
  const useless = { ...around, base: [1, 3] };
  expect(gainShares(useless, [2.5, 1.5])).toEqual([null, 0.75]);
  expect(overlapOf({ ...around, contributors: around.contributors.slice(0, 1) })).toBeNull();
});

const told = (phase: Progress['phase'], done: number, total: number): Progress => ({
  phase,
  item: '',
  tensorsDone: 0,
  tensors: 0,
  bytesDone: 0,
  bytes: 0,
  bytesPerSecond: 0,
  secondsLeft: null,
  stages: { read: 0, upload: 0, compute: 0, readback: 0, write: 0 },
  counted: { done, total, unit: 'tokens' },
  finished: [],
});

test('the time left is that of all steps, by work that was done and not by what was found', () => {
  const sent: Progress[] = [];
  let now = 0;
  const clock = performance.now;
  performance.now = () => now;
  try {
    const steps = [
      { at: 0, phase: 'writing', work: 100 },
      { at: 1, phase: 'searching', work: 300 },
      { at: 2, phase: 'searching', work: 600 },
    ] as const;
    const meter = overallProgress(steps, (progress) => sent.push(progress));
    meter.report(0, 'text', told('writing', 0, 10));
    expect(sent.at(-1)).toMatchObject({ secondsLeft: null, step: { name: 'text', at: 0, of: 3 } });
    now = 1000;
    meter.report(0, 'text', told('writing', 5, 10));
    // 50 of 1000 in a second
    expect(sent.at(-1)!.secondsLeft).toBeCloseTo(19, 6);
    now = 2000;
    meter.report(0, 'text', told('writing', 10, 10));
    meter.end(0);
    // the second step was found done: 300 more without any time
    meter.end(1);
    meter.report(2, 'last', told('searching', 0, 6));
    expect(sent.at(-1)).toMatchObject({ step: { name: 'last', at: 2, of: 3 } });
    expect(sent.at(-1)!.secondsLeft).toBeCloseTo(12, 6);
    expect(meter.seconds().writing).toBeCloseTo(2, 6);
  } finally {
    performance.now = clock;
  }
});

test('steps side by side share the time that passes: together they take no more than the clock says', () => {
  let now = 0;
  const clock = performance.now;
  performance.now = () => now;
  try {
    const meter = overallProgress(workSteps(recipe, 4), () => {});
    meter.report(0, 'text', told('writing', 0, 2));
    now = 20_000;
    meter.end(0);
    for (const at of [1, 2, 3]) meter.report(at, 'method', told('searching', 0, 7));
    now = 50_000;
    meter.end(1);
    meter.report(2, 'method', told('comparing', 1, 7));
    now = 80_000;
    meter.end(2);
    meter.end(3);
    const seconds = meter.seconds();
    expect(Object.values(seconds).reduce((a, b) => a + b, 0)).toBeCloseTo(80, 9);
    expect(seconds).toEqual({ writing: 20, searching: 45, comparing: 15 });
  } finally {
    performance.now = clock;
  }
});

test('of steps under way at once the first is named, and two threads share a step', () => {
  const sent: Progress[] = [];
  const meter = overallProgress(workSteps(recipe, 4), (progress) => sent.push(progress));
  meter.report(0, 'text', told('writing', 1, 1), 0, 2);
  meter.report(0, 'text', told('writing', 0, 1), 1, 2);
  meter.end(0);
  meter.report(2, 'second', told('searching', 1, 7));
  meter.report(1, 'first', told('searching', 1, 7));
  meter.report(2, 'second', told('searching', 2, 7));
  expect(sent.at(-1)!.step).toMatchObject({ name: 'first', at: 1, of: 7 });
});
