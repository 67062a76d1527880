import { describe, expect, test } from 'vitest';
import { formatRecipe } from '../../formats/recipe-format';
import { parseRecipe } from '../../formats/recipe-yaml';
import type { MergeMethod } from '../../merge/method';
import { methodById, methods } from '../../merge/methods/index';
import { sampleModels } from '../worker.test.fixture';
import {
  buildRecipe,
  contributorId,
  freeName,
  methodTitle,
  outputName,
  recipeTitle,
  usesSeed,
} from './built-recipe';
import {
  addContributor,
  emptyRecipe,
  type RecipeState,
  setContributorParameter,
  setEnabled,
  setMethod,
  setRecommended,
} from './recipe-state';
import { sampleRecipe } from './roles';

const ties = methodById.get('ties')!;
const dare = methodById.get('dare_ties')!;
const sample = setMethod(sampleRecipe(sampleModels), methodById.get('task_arithmetic'), ties);

describe('state to recipe', () => {
  test('the sample: TIES 0.2 of both adapters on the base and of the fine-tune', () => {
    expect(buildRecipe(sample, sampleModels, ties)).toMatchObject({
      mergeMethod: 'ties',
      baseModel: 'samples/base',
      models: [
        { model: 'samples/base+samples/kitchen', parameters: { weight: 1, density: 0.2 } },
        { model: 'samples/base+samples/harbour', parameters: { weight: 1, density: 0.2 } },
        { model: 'samples/workshop', parameters: { weight: 1, density: 0.2 } },
      ],
      parameters: { lambda: 1 },
      amalgam: {},
    });
  });

  test('the recipe is the same after a way through YAML, whatever the method', () => {
    for (const method of methods) {
      const recipe = buildRecipe(
        { ...sample, method: method.id, seed: 7, shardBytes: 5_000_000, outDtype: 'float16' },
        sampleModels,
        method,
      );
      expect(parseRecipe(formatRecipe(recipe))).toEqual({ recipe, problems: [] });
    }
  });

  test('numbers and switches are written out, choices where they differ from their default', () => {
    const choices = [
      { value: 'a', label: 'a' },
      { value: 'b', label: 'b' },
    ];
    const method: MergeMethod = {
      ...ties,
      parameters: {
        size: { kind: 'number', label: '', help: '', default: 2, min: 0, max: 9 },
        on: { kind: 'boolean', label: '', help: '', default: false },
        way: { kind: 'choice', label: '', help: '', default: 'a', choices },
        idle: { kind: 'number', label: '', help: '', default: 2, min: 0, max: 9, inert: true },
      },
    };
    expect(buildRecipe(sample, sampleModels, method).parameters).toEqual({ size: 2, on: false });
    const chosen = { ...sample, parameters: { way: 'b' } };
    expect(buildRecipe(chosen, sampleModels, method).parameters).toEqual({ size: 2, on: false, way: 'b' });
  });

  test('a contributor switched off is left out, its settings stay in the state', () => {
    const off = setEnabled(sample, 'samples/harbour', false);
    expect(buildRecipe(off, sampleModels, ties).models?.map((m) => m.model)).toEqual([
      'samples/base+samples/kitchen',
      'samples/workshop',
    ]);
    expect(off.contributors).toHaveLength(3);
  });

  test('revisions stay with base and adapter', () => {
    const models = [{ ...sampleModels[1]!, ref: 'me/lora@0123abc' }];
    expect(contributorId('org/base@fedcba9', 'me/lora@0123abc', models)).toBe(
      'org/base@fedcba9+me/lora@0123abc',
    );
  });

  test('a method without a base gets none, and its adapters still name theirs', () => {
    const recipe = buildRecipe(sample, sampleModels, methodById.get('linear')!);
    expect(recipe.baseModel).toBeUndefined();
    expect(recipe.models?.[0]).toEqual({ model: 'samples/base+samples/kitchen', parameters: { weight: 1 } });
  });

  test('the seed is written only where the method draws random numbers', () => {
    const seeded: RecipeState = { ...sample, seed: 42 };
    expect(usesSeed(ties, {})).toBe(false);
    expect(usesSeed(dare, {})).toBe(true);
    expect(buildRecipe(seeded, sampleModels, ties).amalgam).toEqual({});
    expect(buildRecipe(seeded, sampleModels, dare).amalgam).toEqual({ seed: 42 });
  });
});

describe('names', () => {
  test('title and method', () => {
    expect(recipeTitle(sample)).toBe('kitchen + harbour + workshop');
    expect(methodTitle(sample, ties)).toBe('TIES 0.20');
    expect(methodTitle(sample, methodById.get('task_arithmetic')!)).toBe('Task arithmetic');
    const mixed = setContributorParameter(sample, 'samples/kitchen', 'density', 0.5);
    expect(methodTitle(mixed, ties)).toBe('TIES');
    expect(recipeTitle({ ...sample, contributors: [] })).toBe('New merge');
  });

  test('the output name is safe for every file system', () => {
    expect(outputName(sample)).toBe('kitchen-harbour-workshop-ties');
    const odd = { ...sample, contributors: [{ ...sample.contributors[0]!, ref: '../my models/näme:1' }] };
    expect(outputName(odd)).toMatch(/^[A-Za-z0-9][A-Za-z0-9._-]*$/);
    const long = { ...sample, contributors: [{ ...sample.contributors[0]!, ref: 'x'.repeat(3000) }] };
    expect(outputName(long).length).toBeLessThanOrEqual(80);
  });

  test('a taken name gets the next number', () => {
    expect(freeName('a', [])).toBe('a');
    expect(freeName('a', ['a', 'a-2'])).toBe('a-3');
  });
});

test('changing the method keeps what means the same there, and drops what does not', () => {
  const set = { ...sample, parameters: { lambda: 0.5, normalize: true } };
  const changed = setMethod(set, ties, dare);
  expect(changed.method).toBe('dare_ties');
  // normalize is on by default in TIES and off in DARE: it goes back to DARE's default.
  expect(changed.parameters).toEqual({ lambda: 0.5 });
  // a density that TIES recommended is the one that DARE recommends
  expect(changed.contributors).toEqual(
    set.contributors.map((c) => ({ ...c, parameters: { ...c.parameters, density: 0.5 } })),
  );
});

test('who is added gets the density that the method recommends, and so does who has none when it changes', () => {
  const added = setRecommended(addContributor(emptyRecipe, 'a'), ties, ['a']);
  expect(added.contributors[0]?.parameters).toEqual({ density: 0.2 });
  const chosen = setContributorParameter(added, 'a', 'density', 1);
  expect(setRecommended(chosen, ties, ['a'])).toBe(chosen);
  const plain = addContributor({ ...emptyRecipe, method: 'linear' }, 'a');
  const dare = setMethod(plain, methodById.get('linear'), methodById.get('dare_linear')!);
  expect(dare.contributors[0]?.parameters.density).toBe(0.5);
});

test('the dtype of the base is written out, so that mergekit computes as Amalgam does', () => {
  const recipe = sampleRecipe(sampleModels);
  expect(buildRecipe(recipe, sampleModels, ties).outDtype).toBe('bfloat16');
  expect(formatRecipe(buildRecipe(recipe, sampleModels, ties))).toMatch(
    /dtype: float32\nout_dtype: bfloat16/,
  );
  const mixed = sampleModels.map((m) => ({ ...m, dtypes: { BF16: 1, F32: 2 } }));
  expect(buildRecipe(recipe, mixed, ties).outDtype).toBeUndefined();
  expect(buildRecipe({ ...recipe, outDtype: 'float16' }, sampleModels, ties).outDtype).toBe('float16');
});
