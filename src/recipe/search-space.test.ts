import { expect, test } from 'vitest';
import type { Recipe } from '../formats/recipe';
import { methodById } from '../merge/methods';
import { evaluateSetting } from '../merge/plan/parameters';
import { searchSpace } from './search-space';

const recipeOf = (weight: Recipe['parameters'][string], density: Recipe['parameters'][string]): Recipe => ({
  mergeMethod: 'ties',
  baseModel: 'base',
  models: [{ model: 'm', parameters: { weight, density } }],
  parameters: { normalize: false },
  amalgam: {},
});

test('of a Gram merge λ and the share of the sum are searched for', () => {
  const given: Recipe = {
    ...recipeOf(1, 1),
    mergeMethod: 'gram',
    parameters: { match: 'stream', lambda: 1.1 },
  };
  const space = searchSpace(given, methodById.get('gram')!)!;
  expect(space.values(space.start)).toEqual({ lambda: 1.1, sum: 0 });
  expect(space.recipe({ lambda: 0.9, sum: 0.1 }).parameters).toEqual({
    match: 'stream',
    lambda: 0.9,
    sum: 0.1,
  });
});

test('gradients and filters are scaled as they stand; the search begins at the recipe as given', () => {
  const shapes = [
    [0.5, 1],
    [{ filter: 'mlp', value: 0.5 }, { value: [0.2, 0.4] }],
  ] as const;
  for (const shape of shapes) {
    const given = recipeOf([...shape] as number[], [0.25, 0.5]);
    const space = searchSpace(given, methodById.get('ties')!)!;
    expect(space.recipe(space.values(space.start))).toEqual(given);
    const twice = space.recipe({ 'weight 1': 2, density: 3 }).models![0]!.parameters;
    expect(twice.weight).toEqual(
      shape === shapes[0] ? [1, 2] : [{ filter: 'mlp', value: 1 }, { value: [0.4, 0.8] }],
    );
    // no more than all
    expect(twice.density).toEqual([0.75, 1]);
  }
  const plain = searchSpace(recipeOf(0.5, 0.25), methodById.get('ties')!)!;
  expect(plain.recipe({ 'weight 1': 2, density: 0.3 }).models![0]!.parameters).toEqual({
    weight: 2,
    density: 0.3,
  });
});

test('gradients and λ by kind are dimensions where they are asked for, and begin at the recipe', () => {
  const plain = recipeOf(0.5, 1);
  const space = searchSpace(plain, methodById.get('ties')!, { layers: 3, kinds: true })!;
  expect(space.names).toEqual([
    ...[1, 2, 3].map((i) => `weight 1 [${i}]`),
    ...['norms', 'attention', 'mlp', 'rest'].map((kind) => `lambda ${kind}`),
  ]);
  const values = space.values(space.start);
  expect(space.recipe(values).models![0]!.parameters.weight).toEqual([0.5, 0.5, 0.5]);
  const { lambda } = space.recipe({ ...values, 'lambda mlp': 0.7, 'lambda norms': 0 }).parameters;
  const of = (name: string) => evaluateSetting(lambda!, name, 0);
  expect(of('model.layers.0.mlp.up_proj.weight')).toBe(0.7);
  // a norm named after what stands in front of it
  expect(of('model.layers.0.post_attention_layernorm.weight')).toBe(0);
  expect(['h.0.attn.c_attn.weight', 'model.embed_tokens.weight'].map(of)).toEqual([1, 1]);
  // of what stands a factor; of a gradient its points
  const curve = searchSpace(recipeOf([0.2, 0.8], 1), methodById.get('ties')!, { layers: 5 })!;
  expect(curve.values(curve.start)).toEqual({ 'weight 1 [1]': 0.2, 'weight 1 [2]': 0.8 });
});

test('t of SLERP is searched for, as it stands', () => {
  const slerp = (t: Recipe['parameters'][string]): Recipe => ({
    ...recipeOf(1, 1),
    mergeMethod: 'slerp',
    parameters: { t },
  });
  const plain = searchSpace(slerp(0.3), methodById.get('slerp')!)!;
  expect(plain.names).toEqual(['t']);
  expect(plain.recipe(plain.values(plain.start)).parameters.t).toBe(0.3);
  const shaped = [{ filter: 'self_attn', value: [0, 0.5, 1] }, { value: 0.5 }];
  const space = searchSpace(slerp(shaped), methodById.get('slerp')!)!;
  expect(space.recipe(space.values(space.start)).parameters.t).toEqual(shaped);
  expect(space.recipe({ t: 0.5 }).parameters.t).toEqual([
    { filter: 'self_attn', value: [0, 0.25, 0.5] },
    { value: 0.25 },
  ]);
});
