import { describe, expect, test } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { formatRecipe } from './recipe-format';
import { renameRepositories } from './recipe-models';
import { parseRecipe } from './recipe-yaml';

const document = (name: string | null, ...models: string[]) =>
  [
    ...(name === null ? [] : [`name: ${name}`]),
    'merge_method: linear',
    'models:',
    ...models.map((model) => `  - {model: ${model}, parameters: {weight: 1}}`),
    '',
  ].join('\n');
const recipe = (...documents: string[]) => documents.join('---\n');

describe('recipes of several documents', () => {
  test('the document without a name is the result, the others stand in the order they are needed', () => {
    const text = recipe(
      document(null, 'second', 'third'),
      document('second', 'first', 'c'),
      document('first', 'a', 'b'),
      document('third', 'first+lora', 'd'),
    );
    const { recipe: parsed, problems } = parseRecipe(text);
    expect(problems).toEqual([]);
    expect(parsed?.name).toBeUndefined();
    expect(parsed?.stages?.map((stage) => stage.name)).toEqual(['first', 'second', 'third']);
    expect(parsed?.models?.map((m) => m.model)).toEqual(['second', 'third']);
  });

  test('where all have names the one that no other uses is the result', () => {
    const { recipe: parsed } = parseRecipe(recipe(document('first', 'a'), document('second', 'first')));
    expect(parsed?.name).toBe('second');
    expect(parsed?.stages?.map((stage) => stage.name)).toEqual(['first']);
  });

  test('YAML → recipe → YAML → recipe is stable, and mergekit-multi finds its documents', () => {
    const text = recipe(
      document('first', 'a', 'b'),
      document('second', 'first'),
      document(null, 'second', 'first'),
    );
    const parsed = parseRecipe(text).recipe!;
    const written = formatRecipe(parsed);
    expect(parseRecipe(written)).toEqual({ recipe: parsed, problems: [] });
    expect(formatRecipe(parseRecipe(written).recipe!)).toBe(written);
    const names = parseAllDocuments(written).map((d) => (d.toJS() as { name?: string }).name);
    expect(names).toEqual(['first', 'second', undefined]);
  });

  test('dashes at the end begin nothing', () => {
    expect(parseRecipe(`${document(null, 'a')}---\n`).recipe?.stages).toBeUndefined();
  });

  test.each<[string, string, number, RegExp]>([
    [
      'two without a name',
      recipe(document(null, 'a'), document(null, 'b')),
      5,
      /^Two documents have no name/,
    ],
    [
      'a name twice',
      recipe(document('x', 'a'), document('x', 'b'), document(null, 'x')),
      6,
      /^The name x is given to two documents/,
    ],
    ['a name that is no word', recipe(document('a/b', 'a'), document(null, 'c')), 1, /^name is not one word/],
    [
      'a circle',
      recipe(document('x', 'y'), document('y', 'z'), document('z', 'x'), document(null, 'x')),
      1,
      /^x needs itself: x → y → z → x\.$/,
    ],
    ['itself', recipe(document('x', 'x'), document(null, 'x')), 1, /^x needs itself: x → x\.$/],
    [
      'a name that nobody uses, such as a misspelled one',
      recipe(document('first', 'a'), document(null, 'frist', 'b')),
      1,
      /^No other document uses first as a model/,
    ],
    [
      'two results',
      recipe(document('x', 'a'), document('y', 'b')),
      1,
      /^x and y are used by no other document/,
    ],
    [
      'a fault inside a document',
      recipe(document('x', 'a'), `${document(null, 'x')}lambda: 1\n`),
      9,
      /^lambda/,
    ],
  ])('%s', (_, text, line, message) => {
    const { recipe: parsed, problems } = parseRecipe(text);
    expect(parsed).toBeUndefined();
    expect(problems[0]).toMatchObject({
      line,
      message: expect.stringMatching(message) as string,
      hint: expect.stringMatching(/\w/) as string,
    });
  });

  test('many documents are refused', () => {
    const text = recipe(...Array.from({ length: 101 }, (_, i) => document(`n${i}`, 'a')));
    expect(parseRecipe(text).problems[0]?.message).toMatch(/101 documents/);
  });
});

const read = (text: string) => {
  const { recipe, problems } = parseRecipe(text);
  return { recipe, problems: problems.map(({ message }) => message) };
};

test('towers with settings of their own become filters; a tower that does not list a model has weight 0 of it', () => {
  const { recipe, problems } = read(`
merge_method: ties
base_model: base
parameters: {normalize: true}
modules:
  text_decoder:
    parameters: {lambda: 0.8}
    models:
      - {model: a, parameters: {weight: [0.2, 0.6], density: 0.5}}
      - {model: b, parameters: {weight: 0.5, density: 0.5}}
  model.visual:
    parameters: {lambda: 1}
    models:
      - {model: a, parameters: {weight: 1, density: 0.5}}
`);
  expect(problems).toEqual([]);
  const vision = (value: number) =>
    ['vision_tower.', 'vision_model.', 'vision_encoder.', 'visual.'].map((filter) => ({ filter, value }));
  expect(recipe?.parameters).toEqual({ normalize: true, lambda: [...vision(1), { value: 0.8 }] });
  expect(recipe?.models).toEqual([
    { model: 'a', parameters: { weight: [...vision(1), { value: [0.2, 0.6] }], density: 0.5 } },
    { model: 'b', parameters: { weight: [...vision(0), { value: 0.5 }], density: 0.5 } },
  ]);
});

test.each<[string, string, RegExp]>([
  ['no text tower', '{vision: {models: [{model: a}]}, audio: {models: [{model: a}]}}', /no text tower/],
  [
    'a tower twice',
    '{text: {models: [{model: a}]}, vision: {models: [{model: a}]}, visual: {models: [{model: a}]}}',
    /vision tower twice/,
  ],
  ['an unknown tower', '{text: {models: [{model: a}]}, other: {models: [{model: a}]}}', /other is no tower/],
  [
    'a parameter in one tower only',
    '{text: {models: [{model: a, parameters: {density: 0.5}}]}, vision: {models: [{model: a}]}}',
    /density of a is given in some modules, and not in vision/,
  ],
  [
    'filters',
    '{text: {models: [{model: a, parameters: {weight: [{filter: mlp, value: 1}]}}]}, vision: {models: [{model: b}]}}',
    /weight of a has filters/,
  ],
  [
    'slices',
    '{text: {slices: [{sources: [{model: a, layer_range: [0, 1]}]}]}, vision: {models: [{model: a}]}}',
    /text has slices/,
  ],
])('is refused in words: %s', (_, modules, message) => {
  expect(read(`merge_method: linear\nmodules: ${modules}\n`).problems).toEqual([
    expect.stringMatching(message),
  ]);
});

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
