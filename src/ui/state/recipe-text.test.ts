import { expect, test } from 'vitest';
import { formatRecipe } from '../../formats/recipe-format';
import { parseRecipe } from '../../formats/recipe-yaml';
import { methodById, methods } from '../../merge/methods/index';
import { unknownAtLines } from '../../merge/recipe-names';
import { recipeFromText } from '../recipe/RecipeText';
import { buildRecipe } from './built-recipe';
import { recipeState } from './opened-recipe';
import { addPredictedRun } from './predicted-runs';
import {
  addContributor,
  emptyRecipe,
  type RecipeState,
  setBase,
  setEnabled,
  setMethod,
  setParameter,
} from './recipe-state';
import { predictedRuns } from './runs';
import { createStudio, type Studio, type StudioWorker } from './studio';

const textOf = (recipe: RecipeState) => formatRecipe(buildRecipe(recipe, [], methodById.get(recipe.method)!));
const retold = (before: RecipeState, text: string) => recipeFromText(before, parseRecipe(text).recipe!, []);
const three = ['b', 'c', 'd'].reduce(addContributor, setBase(emptyRecipe, 'a'));
const seen = (recipe: RecipeState) =>
  recipe.contributors.map((c) => `${c.ref}${c.color}${c.enabled ? '' : ' off'}`);

test('a text that says the same leaves the form as it is', () => {
  const after = retold(three, textOf(three));
  expect(textOf(after)).toBe(textOf(three));
  expect(seen(after)).toEqual(['b0', 'c1', 'd2']);
});

test('models keep their color when others come and go, and those that are switched off stay', () => {
  const off = setEnabled(three, 'c', false);
  const after = retold(off, textOf(off).replace('model: b', 'model: e'));
  expect(seen(after)).toEqual(['e0', 'd2', 'c1 off']);
  const back = retold(off, textOf(three));
  expect(seen(back)).toEqual(['b0', 'c1', 'd2']);
});

test('a method without a base remembers it, one that becomes a contributor is no base', () => {
  const linear =
    'merge_method: linear\nmodels: [{model: b, parameters: {weight: 1}}, {model: X, parameters: {weight: 1}}]\n';
  expect(retold(three, linear).base).toBe('a');
  expect(retold(three, linear.replace('X', 'a'))).toMatchObject({
    base: null,
    contributors: [{ ref: 'b' }, { ref: 'a' }],
  });
  expect(retold(three, textOf(three).replace('base_model: a\n', '')).base).toBeNull();
});

const misspelled = `merge_method: ties
base_model: a
models:
  - {model: b, parameters: {weight: 1, densty: 0.4}}
  - model: c
    paramters: {density: 0.3}
    parameters: {weight: 1}
parameters:
  normalise: true
  lambda: 1
model_type: llama
`;

test('names without effect stand at their lines, each with the one that was meant', () => {
  const { recipe } = parseRecipe(misspelled);
  expect(unknownAtLines(misspelled, recipe!, methodById)).toMatchObject([
    { line: 4, remedy: expect.stringMatching(/^Did you mean density\?/) },
    { line: 6, remedy: 'Did you mean parameters?' },
    { line: 9, remedy: expect.stringMatching(/^Did you mean normalize\?/) },
    { line: 11, remedy: expect.stringMatching(/^No action needed/) },
  ]);
});

test('names without effect turn no form off, and stay in its text however it is edited', () => {
  const { recipe } = parseRecipe(misspelled);
  const form = recipeState(recipe!, []);
  expect(form).toMatchObject({ asWritten: null, base: 'a', method: 'ties' });
  const edited = setEnabled(setParameter(form, 'lambda', 0.5), 'c', true);
  const ties = methodById.get('ties')!;
  for (const now of [form, edited, setMethod(edited, ties, methodById.get('dare_ties')!)]) {
    const text = textOf(now);
    const warned = unknownAtLines(text, parseRecipe(text).recipe!, methodById);
    expect(warned.map(({ message }) => message).join()).toMatch(/densty.*normalise|normalise.*densty/s);
    expect(warned).toHaveLength(4);
    expect(textOf(retold(now, text))).toBe(text);
  }
  // without them it is the same form
  const right = misspelled
    .replace(', densty: 0.4', '')
    .replace(/^ *(paramters|normalise|model_type).*\n/gm, '');
  const { withoutEffect: _, ...same } = recipeState(parseRecipe(right).recipe!, []);
  expect(form).toMatchObject(same);
});

test('a misspelled name of any parameter of any method is a warning at its line, and the form stays', () => {
  for (const method of methods) {
    const right = textOf(setMethod(three, methodById.get(three.method), method));
    expect(recipeState(parseRecipe(right).recipe!, []).asWritten, method.id).toBeNull();
    const names = [...Object.keys(method.parameters), ...Object.keys(method.modelParameters)];
    for (const name of [...names, 'parameters']) {
      const text = right.replace(new RegExp(`\\b${name}:`), `${name}x:`);
      if (text === right) continue;
      const { recipe } = parseRecipe(text);
      expect(recipeState(recipe!, []).asWritten, text).toBeNull();
      const line = text.split('\n').findIndex((one) => one.includes(`${name}x:`)) + 1;
      const warned = unknownAtLines(text, recipe!, methodById);
      expect(
        warned.filter((w) => w.line === line && w.remedy.includes(name)),
        text,
      ).not.toEqual([]);
    }
  }
});

test('what one method has no use for is no setting of the next', () => {
  const text = 'merge_method: linear\nmodels: [{model: a, parameters: {weight: 1, density: 0.9}}]\n';
  const form = recipeState(parseRecipe(text).recipe!, []);
  expect(textOf(form)).toContain('density: 0.9');
  const ties = setMethod(form, methodById.get('linear'), methodById.get('ties')!);
  expect(textOf(ties)).toContain('density: 0.2');
  expect(textOf(ties)).not.toContain('0.9');
});

test('a method begins in the menu of runs as in the form', () => {
  const { store } = createStudio({} as StudioWorker);
  const studio = { store } as Studio;
  for (const method of methods.filter(({ base }) => base !== 'none')) {
    store.setState({ recipe: three, runs: [] });
    addPredictedRun(studio, method.id);
    const [run] = predictedRuns(store.getState());
    const formed = setMethod(three, methodById.get(three.method), method);
    expect(run?.recipe, method.id).toEqual(buildRecipe(formed, [], method));
  }
});
