import { expect, test } from 'vitest';
import type { ModelInfo } from '../../reports/models';
import { sampleModels } from '../worker.test.fixture';
import { addContributor, emptyRecipe, setBase, setContributorParameter } from './recipe-state';
import { isUntouched, recipeToAddTo, sampleRecipe, withModels } from './roles';

const [sampleBase, sampleLora] = sampleModels as [ModelInfo, ModelInfo];
const checkpoint = (ref: string, origin: ModelInfo['origin'] = 'local'): ModelInfo => ({
  ...sampleBase,
  ref,
  origin,
});
const adapter = (ref: string, baseModel?: string): ModelInfo => {
  const { baseModel: _, ...rest } = sampleLora.adapter!;
  return { ...sampleLora, ref, origin: 'local', adapter: { ...rest, ...(baseModel ? { baseModel } : {}) } };
};
const roles = (added: ModelInfo[], others: ModelInfo[] = []) => {
  const { base, contributors, origins } = withModels(emptyRecipe, added, [...others, ...added]);
  return { base, contributors: contributors.map((c) => c.ref), origins };
};

test('adapters name their base, wherever it lies', () => {
  const [a, b] = [adapter('loras/a', 'org/small'), adapter('loras/b', 'org/small')];
  for (const ref of ['small', 'models/Small', 'models--org--small/snapshots/0123abc']) {
    expect(roles([a, checkpoint('tuned'), checkpoint(ref), b])).toMatchObject({
      base: ref,
      contributors: ['loras/a', 'tuned', 'loras/b'],
    });
  }
  // one that was opened before
  expect(roles([a], [checkpoint('org/small@0123', 'hub')])).toMatchObject({ base: 'org/small@0123' });
});

test('a base that is named and not there is in the recipe by its name; a path is a folder of this computer', () => {
  expect(roles([adapter('a', 'org/small')])).toEqual({ base: 'org/small', contributors: ['a'], origins: {} });
  expect(roles([adapter('a', '/home/me/models/small')])).toEqual({
    base: 'small',
    contributors: ['a'],
    origins: { small: { kind: 'local' } },
  });
  expect(roles([adapter('a')])).toMatchObject({ base: null, contributors: ['a'] });
});

test('of checkpoints alone the base is the one called so, or the one the others are named after', () => {
  const set = (...refs: string[]) => roles(refs.map((ref) => checkpoint(ref))).base;
  expect(set('x/tuned', 'x/my-base')).toBe('x/my-base');
  expect(set('SmolLM2-135M-Instruct', 'SmolLM2-135M')).toBe('SmolLM2-135M');
  expect(set('one', 'other')).toBe('one');
});

test('a recipe that has a base keeps it', () => {
  const added = checkpoint('a-base');
  const recipe = withModels(setBase(emptyRecipe, 'mine'), [added], [checkpoint('mine'), added]);
  expect(recipe.base).toBe('mine');
  expect(recipe.contributors.map((c) => c.ref)).toEqual(['a-base']);
  // but a base that is only named gives way to the folder it means
  const lora = adapter('a', 'org/small');
  const waiting = withModels(emptyRecipe, [lora], [lora]);
  const base = checkpoint('small');
  expect(withModels(waiting, [base], [lora, base])).toMatchObject({ base: 'small' });
});

test('an untouched sample goes when something else is added, one that was edited stays', () => {
  const sample = sampleRecipe(sampleModels);
  const own = [checkpoint('own')];
  expect(isUntouched(sample, sampleModels)).toBe(true);
  expect(recipeToAddTo(sample, own, sampleModels)).toBe(emptyRecipe);
  expect(recipeToAddTo(sample, [sampleLora], sampleModels)).toBe(sample);
  const edited = setContributorParameter(sample, 'samples/kitchen', 'density', 0.3);
  expect(recipeToAddTo(edited, own, sampleModels)).toBe(edited);
  expect(recipeToAddTo(addContributor(sample, 'own'), own, sampleModels)).not.toBe(emptyRecipe);
});
