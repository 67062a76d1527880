import { expect, test } from 'vitest';
import { formatRecipe } from '../../formats/recipe-format';
import { parseRecipe } from '../../formats/recipe-yaml';
import { methodById } from '../../merge/methods/index';
import { recipeFromText, warningsAtLines } from '../recipe/RecipeText';
import { buildRecipe } from './built-recipe';
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

test('warnings of the plan stand at the lines of the keys they are about', () => {
  const text = 'merge_method: ties\nparameters:\n  normalise: true\n  lambda: 1\nmodel_type: llama\n';
  const problem = {
    severity: 'warning',
    code: 'ParameterIgnored',
    message: 'ties has no parameter normalise.',
  } as const;
  const remedy = 'Did you mean normalize?';
  const elsewhere = { severity: 'warning', code: 'Other', message: 'of no key', remedy } as const;
  expect(warningsAtLines(text, [elsewhere, { ...problem, remedy, keys: ['normalise'] }])).toEqual([
    { line: 3, message: problem.message, remedy },
  ]);
});
