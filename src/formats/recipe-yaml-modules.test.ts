import { expect, test } from 'vitest';
import { parseRecipe } from './recipe-yaml';

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
