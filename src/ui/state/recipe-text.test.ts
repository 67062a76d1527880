import { expect, test } from 'vitest';
import { formatRecipe } from '../../formats/recipe-format';
import { parseRecipe } from '../../formats/recipe-yaml';
import { methodById } from '../../merge/methods/index';
import { unknownAtLines } from '../../merge/recipe-names';
import { recipeFromText } from '../recipe/RecipeText';
import { buildRecipe } from './built-recipe';
import { recipeState } from './opened-recipe';
import { addContributor, emptyRecipe, type RecipeState, setBase, setEnabled } from './recipe-state';

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

test('names without effect turn no form off, and the merge is the same', () => {
  const { recipe } = parseRecipe(misspelled);
  const form = recipeState(recipe!, []);
  expect(form).toMatchObject({ asWritten: null, base: 'a', method: 'ties' });
  const right = misspelled
    .replace(', densty: 0.4', '')
    .replace(/^ *(paramters|normalise|model_type).*\n/gm, '');
  expect(textOf(form)).toBe(textOf(recipeState(parseRecipe(right).recipe!, [])));
});
