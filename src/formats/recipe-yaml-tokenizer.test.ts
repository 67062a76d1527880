import { expect, test } from 'vitest';
import { formatRecipe } from './recipe-format';
import { renameRepositories } from './recipe-models';
import { parseRecipe } from './recipe-yaml';

const head = 'merge_method: linear\nmodels:\n  - model: a\n';
const problemsOf = (text: string) => parseRecipe(head + text).problems;
const recipeOf = (text: string) => {
  const { recipe, problems } = parseRecipe(head + text);
  expect(problems).toEqual([]);
  return recipe!;
};

test('both keys, and the default of the newer one', () => {
  expect(recipeOf('tokenizer_source: union\n')).toMatchObject({ tokenizerSource: 'union' });
  expect(recipeOf('tokenizer: {source: base}\n')).toMatchObject({ tokenizerSource: 'base' });
  const padded = recipeOf('tokenizer: {pad_to_multiple_of: 64}\n');
  expect(padded).toMatchObject({ tokenizerSource: 'union', tokenizer: { padToMultipleOf: 64 } });
  expect(recipeOf('tokenizer_source: owner/b@v1\n').tokenizerSource).toBe('owner/b@v1');
});

test('tokens with their sources, in the order written, there and back', () => {
  const recipe = recipeOf(`tokenizer:
  source: base
  tokens:
    <|im_start|>: {source: a, force: true}
    "10": {source: {kind: zero}}
    "2": {source: {kind: model_token, model: a, token: "<|x|>"}}
    __proto__: {source: {kind: model_token, model: a, token_id: 7}, force: false}
`);
  expect(recipe.tokenizer!.tokens).toEqual([
    { token: '<|im_start|>', source: { kind: 'model', model: 'a' }, force: true },
    { token: '10', source: { kind: 'zero' } },
    { token: '2', source: { kind: 'model_token', model: 'a', token: '<|x|>' } },
    { token: '__proto__', source: { kind: 'model_token', model: 'a', tokenId: 7 } },
  ]);
  const text = formatRecipe(recipe);
  expect(parseRecipe(text)).toEqual({ recipe, problems: [] });
  expect(formatRecipe(parseRecipe(text).recipe!)).toBe(text);
  const renamed = renameRepositories(recipe, new Map([['a', 'owner/a@c0ffee']]));
  expect(renamed.tokenizer!.tokens!.map(({ source }) => 'model' in source && source.model)).toEqual([
    'owner/a@c0ffee',
    false,
    'owner/a@c0ffee',
    'owner/a@c0ffee',
  ]);
});

test.each<[string, string, number, RegExp]>([
  [
    'both keys',
    'tokenizer_source: base\ntokenizer: {source: base}\n',
    5,
    /both tokenizer_source and tokenizer/,
  ],
  ['an unknown part', 'tokenizer: {sauce: base}\n', 4, /tokenizer\.sauce is not a known setting/],
  ['a multiple of nothing', 'tokenizer: {pad_to_multiple_of: 0}\n', 4, /not an integer from 1 to 65536/],
  ['no source of a token', 'tokenizer:\n  tokens:\n    x: {force: true}\n', 6, /x has no source/],
  ['an empty token', 'tokenizer:\n  tokens:\n    "": {source: a}\n', 6, /empty token/],
  [
    'force that is no switch',
    'tokenizer:\n  tokens:\n    x: {source: a, force: 2}\n',
    6,
    /not true or false/,
  ],
  ['an unknown kind', 'tokenizer:\n  tokens:\n    x: {source: {kind: one}}\n', 6, /cannot be “one”/],
  [
    'a zero with a model',
    'tokenizer:\n  tokens:\n    x: {source: {kind: zero, model: a}}\n',
    6,
    /kind: zero/,
  ],
  [
    'a token named twice over',
    'tokenizer:\n  tokens:\n    x: {source: {kind: model_token, model: a, token: y, token_id: 1}}\n',
    6,
    /either token or token_id/,
  ],
])('refused: %s', (_, text, line, message) => {
  const problems = problemsOf(text);
  expect(problems).toHaveLength(1);
  expect(problems[0]).toMatchObject({ line, message: expect.stringMatching(message) });
  expect(problems[0]!.hint).toMatch(/\w/);
});
