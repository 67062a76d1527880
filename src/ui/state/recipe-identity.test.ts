import { expect, test } from 'vitest';
import { formatRecipe } from '../../formats/recipe-format';
import { parseRecipe } from '../../formats/recipe-yaml';
import { methodById, methods } from '../../merge/methods/index';
import { sampleModels } from '../worker.test.fixture';
import { buildRecipe } from './built-recipe';
import { isRecipeOf } from './recipe-identity';
import { setContributorParameter, setMethod } from './recipe-state';
import { sampleRecipe } from './roles';
import { methodOf } from './studio';

const sample = sampleRecipe(sampleModels);
const ties = setMethod(sample, methodOf(sample), methodById.get('ties')!);

test('a resumed merge, whose recipe comes from its journal, is the recipe of the form, whatever the method', () => {
  for (const method of methods) {
    const state = { ...sampleRecipe(sampleModels), method: method.id, seed: 7, exclude: ['lm_head'] };
    const { recipe } = parseRecipe(formatRecipe(buildRecipe(state, sampleModels, method)));
    expect([method.id, isRecipeOf(recipe!, state, sampleModels)]).toEqual([method.id, true]);
  }
});

test('another value is another recipe', () => {
  const state = ties;
  const { recipe } = parseRecipe(formatRecipe(buildRecipe(state, sampleModels, methodOf(state))));
  const [first] = state.contributors;
  expect(isRecipeOf(recipe!, setContributorParameter(state, first!.ref, 'density', 0.3), sampleModels)).toBe(
    false,
  );
});

test('after a reload, with the folders of its models not open yet, a merge is still the one of the recipe', () => {
  const recipe = ties;
  const built = buildRecipe(recipe, sampleModels, methodOf(recipe));
  expect(built.outDtype).toBeDefined();
  expect(built.models?.some(({ model }) => model.includes('+'))).toBe(true);
  expect(isRecipeOf(built, recipe, [])).toBe(true);
  const [first] = recipe.contributors;
  expect(isRecipeOf(built, setContributorParameter(recipe, first!.ref, 'density', 0.3), [])).toBe(false);
});
