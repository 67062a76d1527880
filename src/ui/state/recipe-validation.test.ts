import { describe, expect, test } from 'vitest';
import { methodById, methods } from '../../merge/methods/index';
import { sampleModels } from '../worker.test.fixture';
import { emptyRecipe, setContributorParameter, setEnabled, setMethod } from './recipe-state';
import { recipeProblems, settingProblem } from './recipe-validation';
import { sampleRecipe } from './roles';

const ties = methodById.get('ties')!;
const passthrough = methodById.get('passthrough')!;
const recipe = sampleRecipe(sampleModels);
const places = (...args: Parameters<typeof recipeProblems>) => recipeProblems(...args).map((p) => p.place);

describe('recipe problems', () => {
  test('the sample has none, under any method that takes three models', () => {
    for (const method of methods) {
      if (method.models.min > 3 || method.models.max < 3) continue;
      expect(recipeProblems(setMethod(recipe, ties, method), sampleModels, method)).toEqual([]);
    }
  });

  test('an empty recipe lacks base and contributors', () => {
    expect(places(emptyRecipe, [], ties)).toEqual([{ kind: 'base' }, { kind: 'contributors' }]);
  });

  test('too many contributors: says how many to switch off', () => {
    const [problem] = recipeProblems(recipe, sampleModels, passthrough);
    expect(problem?.place).toEqual({ kind: 'contributors' });
    expect(problem?.remedy).toContain('Switch off 2');
    const one = setEnabled(setEnabled(recipe, 'samples/kitchen', false), 'samples/harbour', false);
    expect(recipeProblems(one, sampleModels, passthrough)).toEqual([]);
  });

  test('an adapter needs a base also where the method does not', () => {
    const homeless = { ...recipe, base: null };
    expect(places(homeless, sampleModels, methodById.get('linear')!)).toEqual([{ kind: 'base' }]);
  });

  test('LoRAs that become a LoRA by their factors need no base; a merge that is cut to one does', () => {
    const loras = {
      ...recipe,
      base: null,
      output: 'adapter' as const,
      contributors: recipe.contributors.filter(({ ref }) => ref !== 'samples/workshop'),
    };
    const cat = methodById.get('task_arithmetic')!;
    const of = (more: Partial<typeof loras>) =>
      places({ ...loras, method: cat.id, ...more }, sampleModels, cat);
    expect(of({})).toEqual([]);
    expect(of({ combination: 'merged_svd' })).toEqual([{ kind: 'base' }]);
    expect(of({ contributors: recipe.contributors })).toEqual([{ kind: 'base' }]);
  });

  test('an adapter cannot be the base', () => {
    expect(places({ ...recipe, base: 'samples/kitchen' }, sampleModels, ties)).toContainEqual({
      kind: 'base',
    });
  });

  test('R22: a value out of bounds is found at its contributor; one switched off is not asked', () => {
    const wrong = setContributorParameter(recipe, 'samples/harbour', 'density', -0.5);
    expect(places(wrong, sampleModels, ties)).toEqual([
      { kind: 'contributor', ref: 'samples/harbour', parameter: 'density' },
    ]);
    expect(recipeProblems(setEnabled(wrong, 'samples/harbour', false), sampleModels, ties)).toEqual([]);
  });

  test('R22: weights that cancel under normalize are found before planning, and only there', () => {
    const opposite = sampleModels
      .slice(1, 3)
      .reduce(
        (f, { ref }, i) => setContributorParameter(f, ref, 'weight', i === 0 ? 1 : -1),
        setEnabled(recipe, 'samples/workshop', false),
      );
    const [problem] = recipeProblems(opposite, sampleModels, ties);
    expect(problem).toMatchObject({
      place: { kind: 'method' },
      message: expect.stringMatching(/add up to 0/),
    });
    expect(problem?.remedy).toContain('normalize: false');
    const added = { ...opposite, parameters: { normalize: false } };
    expect(recipeProblems(added, sampleModels, ties)).toEqual([]);
  });

  test.each<[string, string, number, number]>([
    ['ε at min(ρ, 1 − ρ)', 'della', 0.3, 0.3],
    ['ε above it', 'della_linear', 0.9, 0.2],
  ])('what the method refuses is refused in the form: %s', (_, id, density, epsilon) => {
    const method = methodById.get(id)!;
    const wrong = setContributorParameter(
      setContributorParameter(setMethod(recipe, ties, method), 'samples/harbour', 'density', density),
      'samples/harbour',
      'epsilon',
      epsilon,
    );
    const [problem] = recipeProblems(wrong, sampleModels, method);
    expect(problem?.place).toEqual({ kind: 'method' });
    expect(problem?.message).toMatch(/epsilon .* must be below min\(density, 1 − density\)/);
    expect(problem?.remedy).toMatch(/smaller epsilon/);
  });

  test('R22: density 0 leaves nothing of a model', () => {
    const nothing = setContributorParameter(recipe, 'samples/harbour', 'density', 0);
    expect(recipeProblems(nothing, sampleModels, ties)).toEqual([
      {
        place: { kind: 'contributor', ref: 'samples/harbour', parameter: 'density' },
        message: 'With density 0 nothing of harbour is kept.',
        remedy: expect.stringMatching(/above 0/) as string,
      },
    ]);
  });

  test.each([
    ['density', -0.1],
    ['density', Number.NaN],
    ['weight', Number.NaN],
    ['weight', 1e9],
  ])('%s %f is refused at its field', (name, value) => {
    const wrong = setContributorParameter(recipe, 'samples/harbour', name, value);
    expect(places(wrong, sampleModels, ties)).toEqual([
      { kind: 'contributor', ref: 'samples/harbour', parameter: name },
    ]);
  });

  test('R22: t out of range is refused at its field', () => {
    const slerp = methodById.get('slerp')!;
    const one = setEnabled(setEnabled(recipe, 'samples/kitchen', false), 'samples/harbour', false);
    for (const t of [-101, 101, Number.NaN]) {
      const wrong = { ...setMethod(one, ties, slerp), parameters: { t } };
      expect(places(wrong, sampleModels, slerp)).toEqual([{ kind: 'parameter', name: 't' }]);
    }
  });

  test('seed and shard size have bounds', () => {
    for (const seed of [-1, 2 ** 32, 0.5, Number.NaN]) {
      expect(places({ ...recipe, seed }, sampleModels, ties)).toEqual([{ kind: 'seed' }]);
    }
    for (const shardBytes of [0, 1e12, Number.NaN]) {
      expect(places({ ...recipe, shardBytes }, sampleModels, ties)).toEqual([{ kind: 'shardBytes' }]);
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
