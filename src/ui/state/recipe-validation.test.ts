import { describe, expect, test } from 'vitest';
import { methodById, methods } from '../../merge/methods/index';
import { sampleModels } from '../engine-fixture';
import { sampleRecipe } from './models';
import { emptyRecipe, setContributorParameter, setEnabled, setMethod } from './recipe-facts';
import { recipeProblems, settingProblem } from './recipe-validation';

const ties = methodById.get('ties')!;
const passthrough = methodById.get('passthrough')!;
const facts = sampleRecipe(sampleModels);
const places = (...args: Parameters<typeof recipeProblems>) => recipeProblems(...args).map((p) => p.place);

describe('recipe problems', () => {
  test('the sample has none, under any method that takes three models', () => {
    for (const method of methods) {
      if (method.models.min > 3 || method.models.max < 3) continue;
      expect(recipeProblems(setMethod(facts, ties, method), sampleModels, method)).toEqual([]);
    }
  });

  test('an empty recipe lacks base and contributors', () => {
    expect(places(emptyRecipe, [], ties)).toEqual([{ kind: 'base' }, { kind: 'contributors' }]);
  });

  test('too many contributors: says how many to switch off', () => {
    const [problem] = recipeProblems(facts, sampleModels, passthrough);
    expect(problem?.place).toEqual({ kind: 'contributors' });
    expect(problem?.remedy).toContain('Switch off 2');
    const one = setEnabled(setEnabled(facts, 'samples/kitchen', false), 'samples/harbour', false);
    expect(recipeProblems(one, sampleModels, passthrough)).toEqual([]);
  });

  test('an adapter needs a base also where the method does not', () => {
    const homeless = { ...facts, base: null };
    expect(places(homeless, sampleModels, methodById.get('linear')!)).toEqual([{ kind: 'base' }]);
  });

  test('an adapter cannot be the base', () => {
    expect(places({ ...facts, base: 'samples/kitchen' }, sampleModels, ties)).toContainEqual({
      kind: 'base',
    });
  });

  test('a value out of bounds is found at its contributor; one switched off is not asked', () => {
    const wrong = setContributorParameter(facts, 'samples/harbour', 'density', 1.5);
    expect(places(wrong, sampleModels, ties)).toEqual([
      { kind: 'contributor', ref: 'samples/harbour', parameter: 'density' },
    ]);
    expect(recipeProblems(setEnabled(wrong, 'samples/harbour', false), sampleModels, ties)).toEqual([]);
  });

  test('seed and shard size have bounds', () => {
    for (const seed of [-1, 2 ** 32, 0.5, Number.NaN]) {
      expect(places({ ...facts, seed }, sampleModels, ties)).toEqual([{ kind: 'seed' }]);
    }
    for (const shardBytes of [0, 1e12, Number.NaN]) {
      expect(places({ ...facts, shardBytes }, sampleModels, ties)).toEqual([{ kind: 'shardBytes' }]);
    }
  });
});

test('a setting is checked by its spec', () => {
  const number = { kind: 'number', label: 'n', help: '', min: 0, max: 4, integer: true } as const;
  expect(settingProblem(number, 3)).toBeNull();
  expect(settingProblem(number, 3.5)).toMatch(/whole/);
  expect(settingProblem(number, 5)).toMatch(/0 to 4/);
  expect(settingProblem(number, 'x')).toMatch(/not a number/);
  expect(settingProblem(ties.parameters.rescale!, 'none')).toBeNull();
  expect(settingProblem(ties.parameters.rescale!, 'l2')).toMatch(/one of/);
  expect(settingProblem(ties.parameters.normalize!, 1)).toMatch(/on or off/);
});
