import { expect, test } from 'vitest';
import { formatRecipe } from '../../formats/recipe-format';
import { parseRecipe } from '../../formats/recipe-yaml';
import { methodById, methods } from '../../merge/methods/index';
import { sampleModels } from '../worker.test.fixture';
import { buildRecipe } from './built-recipe';
import { isRecipeOf } from './recipe-identity';
import {
  addContributor,
  CONTRIBUTOR_COLORS,
  combinationOf,
  effectiveSpecs,
  emptyRecipe,
  hasCurve,
  moveContributor,
  outputCombination,
  removeContributor,
  scalarValue,
  setBase,
  setContributorParameter,
  setEnabled,
  setMethod,
  settingValue,
} from './recipe-state';
import { sampleRecipe } from './roles';
import { methodOf } from './studio';

test('a new contributor takes the settings of the one before it', () => {
  const one = setContributorParameter(addContributor(emptyRecipe, 'a'), 'a', 'density', 0.2);
  const two = addContributor(one, 'b');
  expect(two.contributors.map((c) => c.parameters.density)).toEqual([0.2, 0.2]);
});

test('a model is in the recipe once: added twice it stays once, as base it stops contributing', () => {
  const twice = addContributor(addContributor(emptyRecipe, 'a'), 'a');
  expect(twice.contributors).toHaveLength(1);
  expect(setBase(twice, 'a')).toMatchObject({ base: 'a', contributors: [] });
});

test('colors stay with their model, and a freed color is used again', () => {
  const refs = Array.from({ length: CONTRIBUTOR_COLORS }, (_, i) => `m${i}`);
  const full = refs.reduce(addContributor, emptyRecipe);
  expect(new Set(full.contributors.map((c) => c.color)).size).toBe(CONTRIBUTOR_COLORS);
  const swapped = addContributor(removeContributor(full, 'm2'), 'new');
  expect(swapped.contributors.at(-1)?.color).toBe(2);
  expect(swapped.contributors.find((c) => c.ref === 'm3')?.color).toBe(3);
});

test('settings that were never made are the method’s defaults; a weight without one is 1', () => {
  const ties = methodById.get('ties')!;
  expect(settingValue({}, 'lambda', ties.parameters.lambda!)).toBe(1);
  expect(settingValue({}, 'normalize', ties.parameters.normalize!)).toBe(true);
  expect(settingValue({}, 'weight', ties.modelParameters.weight!)).toBe(1);
  expect(settingValue({ weight: -2 }, 'weight', ties.modelParameters.weight!)).toBe(-2);
});

test('the form never shows a parameter without effect', () => {
  for (const method of methods) {
    const shown = [...effectiveSpecs(method.parameters), ...effectiveSpecs(method.modelParameters)];
    expect(shown.map(({ name }) => name)).not.toContain('int8_mask');
    expect(shown.every(({ spec }) => spec.inert !== true)).toBe(true);
  }
});

test('where LoRAs become a LoRA the form shows what their combination reads', () => {
  const ties = methods.find((m) => m.id === 'ties')!;
  const shown = (specs: typeof ties.parameters) =>
    effectiveSpecs(specs, {}, outputCombination({ ...emptyRecipe, method: 'ties', output: 'adapter' }, []));
  expect(shown(ties.parameters).map(({ name }) => name)).toEqual(['lambda', 'majority_sign_method']);
  expect(shown(ties.modelParameters).map(({ name }) => name)).toEqual(['weight', 'density']);
  expect(outputCombination(emptyRecipe, [])).toBeUndefined();
  const whole = { ...addContributor(emptyRecipe, 'tuned'), output: 'adapter' as const };
  expect(combinationOf(whole, [{ ref: 'tuned', kind: 'adapter' }])).toBe('cat');
  expect(combinationOf(whole, [{ ref: 'tuned', kind: 'checkpoint' }])).toBe('merged_svd');
  expect(outputCombination(whole, [{ ref: 'tuned', kind: 'checkpoint' }])).toBeUndefined();
  expect(combinationOf({ ...whole, method: 'slerp' }, [])).toBe('merged_svd');
  const gram = methodById.get('gram')!;
  const read = (match: string) => effectiveSpecs(gram.modelParameters, { match }, 'gram');
  expect(read('inputs').map(({ name }) => name)).toEqual(['weight', 'density', 'calibration']);
  expect(read('changes').map(({ name }) => name)).toEqual(['weight']);
});

test('contributors change places and stay within the list', () => {
  const three = ['a', 'b', 'c'].reduce(addContributor, emptyRecipe);
  const order = (to: number, ref = 'b') => moveContributor(three, ref, to).contributors.map((c) => c.ref);
  expect(order(0)).toEqual(['b', 'a', 'c']);
  expect(order(2)).toEqual(['a', 'c', 'b']);
  expect(order(9)).toEqual(['a', 'c', 'b']);
  expect(order(-1, 'a')).toEqual(['a', 'b', 'c']);
  expect(moveContributor(three, 'b', 1)).toBe(three);
});

test('a curve counts where it has an effect: of a model that is merged, of a parameter the method has', () => {
  const ties = methodById.get('ties')!;
  const drawn = setContributorParameter(addContributor(emptyRecipe, 'a'), 'a', 'density', [0.3, 0.7]);
  expect(hasCurve(drawn, ties)).toBe(true);
  expect(hasCurve(setEnabled(drawn, 'a', false), ties)).toBe(false);
  expect(hasCurve(drawn, methodById.get('linear')!)).toBe(false);
  const spec = ties.modelParameters.density!;
  expect(scalarValue(drawn.contributors[0]!.parameters, 'density', spec)).toBe(0.3);
});

const sample = sampleRecipe(sampleModels);
const ties = setMethod(sample, methodOf(sample), methodById.get('ties')!);

test('a resumed merge, whose recipe comes from its journal, is the recipe of the form, whatever the method', () => {
  for (const method of methods) {
    const state = { ...sampleRecipe(sampleModels), method: method.id, seed: 7, exclude: ['lm_head'] };
    const { recipe } = parseRecipe(formatRecipe(buildRecipe(state, sampleModels, method)));
    expect([method.id, isRecipeOf(recipe!, state, sampleModels)]).toEqual([method.id, true]);
  }
});

test('what a method recommends goes with it, and what was chosen stays', () => {
  const chosen = setContributorParameter(ties, ties.contributors[0]!.ref, 'density', 0.3);
  const gram = setMethod(chosen, methodById.get('ties'), methodById.get('gram')!);
  expect(ties.contributors.map(({ parameters }) => parameters.density)).toEqual([0.2, 0.2, 0.2]);
  expect(gram.contributors.map(({ parameters }) => parameters.density)).toEqual([0.3, undefined, undefined]);
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
