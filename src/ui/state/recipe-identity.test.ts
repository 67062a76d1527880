import { expect, test } from 'vitest';
import { formatRecipe } from '../../formats/recipe-format';
import { parseRecipe } from '../../formats/recipe-yaml';
import { methods } from '../../merge/methods/index';
import { sampleModels } from '../worker.test.fixture';
import { buildRecipe } from './built-recipe';
import { isRecipeOf } from './recipe-identity';
import { setContributorParameter } from './recipe-state';
import { sampleRecipe } from './roles';

test('a resumed merge, whose recipe comes from its journal, is the recipe of the form, whatever the method', () => {
  for (const method of methods) {
    const state = { ...sampleRecipe(sampleModels), method: method.id, seed: 7, exclude: ['lm_head'] };
    const { recipe } = parseRecipe(formatRecipe(buildRecipe(state, sampleModels, method)));
    expect([method.id, isRecipeOf(recipe!, state, sampleModels)]).toEqual([method.id, true]);
  }
});

test('another value is another recipe', () => {
  const state = sampleRecipe(sampleModels);
  const { recipe } = parseRecipe(
    formatRecipe(buildRecipe(state, sampleModels, methods.find(({ id }) => id === 'ties')!)),
  );
  const [first] = state.contributors;
  expect(isRecipeOf(recipe!, setContributorParameter(state, first!.ref, 'density', 0.3), sampleModels)).toBe(
    false,
  );
});

test('after a reload, with the folders of its models not open yet, a merge is still the one of the recipe', () => {
  const recipe = sampleRecipe(sampleModels);
  const ties = methods.find(({ id }) => id === 'ties')!;
  const built = buildRecipe(recipe, sampleModels, ties);
  expect(built.outDtype).toBeDefined();
  expect(built.models?.some(({ model }) => model.includes('+'))).toBe(true);
  expect(isRecipeOf(built, recipe, [])).toBe(true);
  const [first] = recipe.contributors;
  expect(isRecipeOf(built, setContributorParameter(recipe, first!.ref, 'density', 0.3), [])).toBe(false);
});
