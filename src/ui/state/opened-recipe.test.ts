import { describe, expect, test } from 'vitest';
import { parseRecipe } from '../../formats/recipe-yaml';
import { methodById } from '../../merge/methods/index';
import { gallery } from '../gallery/RecipesDialog';
import { finetune } from '../worker.test.fixture';
import { buildRecipe } from './built-recipe';
import { recipeState } from './opened-recipe';
import { setContributorParameter } from './recipe-state';

const models = [
  finetune('samples/base', { dtypes: {} }),
  finetune('samples/kitchen', { kind: 'adapter', dtypes: {} }),
  finetune('samples/harbour', { kind: 'adapter', dtypes: {} }),
  finetune('samples/workshop', { dtypes: {} }),
];
const read = (text: string) => parseRecipe(text).recipe!;
const built = (text: string) => {
  const recipe = recipeState(read(text), models);
  return { state: recipe, recipe: buildRecipe(recipe, models, methodById.get(recipe.method)!) };
};

/** Examples that say what the form has no field for. */
const AS_WRITTEN = ['slerp', 'stack', 'stages'];

describe('recipeState', () => {
  test.each(gallery)('$id fills the form, or is kept as it is written', ({ id, yaml }) => {
    const { state, recipe } = built(yaml);
    expect(state.asWritten !== null).toBe(AS_WRITTEN.includes(id));
    if (state.asWritten) expect(recipe).toEqual(read(yaml));
    expect(state.contributors.length).toBeGreaterThan(0);
    expect(state.base).toBe(id === 'stack' ? null : 'samples/base');
    const adapters = state.contributors.filter((c) => /kitchen|harbour/.test(c.ref));
    for (const { ref } of adapters) expect(models.some((m) => m.ref === ref)).toBe(true);
  });

  test('a vocabulary fills the form; tokens chosen one by one are kept as they are written', () => {
    const linear =
      'merge_method: linear\nmodels: [{model: a, parameters: {weight: 1}}, {model: b, parameters: {weight: 1}}]\n';
    const { state, recipe } = built(`${linear}tokenizer: {source: union, pad_to_multiple_of: 64}\n`);
    expect(state).toMatchObject({ tokenizerSource: 'union', padToMultipleOf: 64, asWritten: null });
    expect(recipe).toMatchObject({ tokenizerSource: 'union', tokenizer: { padToMultipleOf: 64 } });
    expect(built(`${linear}tokenizer_source: b\n`).state).toMatchObject({
      tokenizerSource: 'b',
      asWritten: null,
    });
    const single = built(`${linear}tokenizer: {tokens: {x: {source: a}}}\n`);
    expect(single.state.asWritten).toEqual(single.recipe);
  });

  test('a chat template fills the form, by name or written out', () => {
    const linear =
      'merge_method: linear\nmodels: [{model: a, parameters: {weight: 1}}, {model: b, parameters: {weight: 1}}]\n';
    for (const chatTemplate of ['auto', 'chatml', '{{ messages[0].content }}']) {
      const { state, recipe } = built(`${linear}chat_template: "${chatTemplate}"\n`);
      expect(state).toMatchObject({ chatTemplate, asWritten: null });
      expect(recipe.chatTemplate).toBe(chatTemplate);
    }
  });

  test('LoRAs that become a LoRA fill the form; a rank that is left to the plan is kept as it is written', () => {
    const loras =
      'merge_method: task_arithmetic\nbase_model: samples/base\nmodels:\n  - {model: samples/base+samples/kitchen, parameters: {weight: 1}}\n';
    const given = { output: 'adapter', combination: 'svd', rank: 8 };
    const { state, recipe } = built(`${loras}amalgam: ${JSON.stringify(given)}\n`);
    expect(state).toMatchObject({ ...given, asWritten: null });
    expect(recipe.amalgam).toMatchObject(given);
    expect(built(`${loras}amalgam: {output: adapter}\n`).recipe.amalgam).not.toHaveProperty('rank');
    expect(built(`${loras}amalgam: {output: adapter, combination: svd}\n`).state.asWritten).not.toBeNull();
    // a share to keep means the cut of the change, named or not
    for (const named of ['', ', combination: merged_svd']) {
      const cut = built(`${loras}amalgam: {output: adapter, energy: 0.9${named}}\n`);
      expect(cut.state).toMatchObject({ asWritten: null, combination: 'merged_svd', energy: 0.9 });
      expect(cut.recipe.amalgam).toMatchObject({ combination: 'merged_svd', energy: 0.9 });
    }
  });

  test('curves and patterns fill the form and keep what they say of the ends', () => {
    const text =
      'merge_method: linear\nmodels: [{model: a, parameters: {weight: [0, 0.5, 1]}}, {model: b, parameters: {weight: 1}}]\n';
    const plain = built(text);
    expect(plain.state).toMatchObject({ asWritten: null, gradientEnds: 'mergekit' });
    expect(plain.state.contributors[0]?.parameters.weight).toEqual([0, 0.5, 1]);
    expect(plain.recipe.amalgam).toEqual({});
    const { state, recipe } = built(
      `${text}amalgam: {gradient_ends: nearest, include: [mlp], exclude: [layers.0.]}\n`,
    );
    expect(state).toMatchObject({ gradientEnds: 'nearest', include: ['mlp'], exclude: ['layers.0.'] });
    expect(recipe.amalgam).toEqual({ gradientEnds: 'nearest', include: ['mlp'], exclude: ['layers.0.'] });
    expect(recipe.models?.[0]?.parameters.weight).toEqual([0, 0.5, 1]);
  });

  test('a curve drawn in the form ends at the nearest layer; without one nothing is said of it', () => {
    const { state, recipe } = built(
      'merge_method: linear\nmodels: [{model: a, parameters: {weight: 1}}, {model: b, parameters: {weight: 1}}]\n',
    );
    expect(recipe.amalgam).toEqual({});
    const drawn = setContributorParameter(state, 'b', 'weight', [1, 0]);
    const method = methodById.get('linear')!;
    expect(buildRecipe(drawn, models, method).amalgam).toEqual({ gradientEnds: 'nearest' });
    const asMergekit = { ...drawn, gradientEnds: 'mergekit' } as const;
    expect(buildRecipe(asMergekit, models, method).amalgam).toEqual({});
  });

  test('what the form writes, it reads again', () => {
    for (const { yaml } of gallery.filter(({ id }) => !AS_WRITTEN.includes(id))) {
      const { state, recipe } = built(yaml);
      expect(buildRecipe(recipeState(recipe, models), models, methodById.get(state.method)!)).toEqual(recipe);
    }
  });

  test.each([
    [
      'a filter by name',
      'merge_method: linear\nmodels: [{model: a, parameters: {weight: [{filter: mlp, value: 1}, {value: 2}]}}]\n',
    ],
    [
      'a model listed twice',
      'merge_method: linear\nmodels: [{model: a, parameters: {weight: 1}}, {model: a, parameters: {weight: 2}}]\n',
    ],
    [
      'a token chosen by itself',
      'merge_method: linear\nmodels: [{model: a, parameters: {weight: 1}}]\ntokenizer: {tokens: {x: {source: a}}}\n',
    ],
    ['a method that does not exist', 'merge_method: dare-ties\nmodels: [{model: a}]\n'],
    [
      'carried NaN',
      'merge_method: linear\nmodels: [{model: a, parameters: {weight: 1}}]\namalgam: {non_finite: carry}\n',
    ],
  ])('%s is kept as it is written', (_, yaml) => {
    expect(recipeState(read(yaml), models).asWritten).toEqual(read(yaml));
  });

  test('mergekit’s true and false become the words of the form, and go out as they came', () => {
    const yaml =
      'merge_method: ties\nbase_model: b\nmodels: [{model: a, parameters: {weight: 1}}]\nparameters: {rescale: true}\n';
    const { state, recipe } = built(yaml);
    expect(state.asWritten).toBeNull();
    expect(state.parameters.rescale).toBe('on');
    expect(recipe.parameters.rescale).toBe(true);
  });
});
