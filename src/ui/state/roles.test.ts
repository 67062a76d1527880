import { expect, test } from 'vitest';
import type { ModelInfo } from '../../reports/models';
import { finetune, sampleModels } from '../worker.test.fixture';
import { addContributor, emptyRecipe, setBase, setContributorParameter } from './recipe-state';
import { isUntouched, lineage, recipeToAddTo, sampleRecipe, withModels } from './roles';

const [, sampleLora] = sampleModels as [ModelInfo, ModelInfo];
const checkpoint = (ref: string, origin: ModelInfo['origin'] = 'local') => finetune(ref, { origin });
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

test('a base that is not open is the first checkpoint that comes and fits the adapters; one that does not contributes', () => {
  const lora = {
    ...adapter('a', 'unsloth/small-bnb-4bit'),
    weights: { 'layers.#.q_proj.weight': ['8×4'], 'layers.#.o_proj.weight': ['4×8'] },
  };
  const model = (ref: string, shape: string) => ({
    ...checkpoint(ref),
    weights: { 'model.layers.#.q_proj.weight': [shape], 'model.layers.#.o_proj.weight': ['4×8'] },
  });
  const waiting = withModels(emptyRecipe, [lora], [lora]);
  expect(waiting.base).toBe('unsloth/small-bnb-4bit');
  const [other, fits, second] = [model('downloads', '8×8'), model('my-copy', '8×4'), model('third', '8×4')];
  const add = (recipe: typeof waiting, ...added: ModelInfo[]) =>
    withModels(recipe, added, [lora, other, fits, second]);
  const roles = ({ base, contributors }: typeof waiting) => [base, ...contributors.map(({ ref }) => ref)];
  expect(roles(add(waiting, fits))).toEqual(['my-copy', 'a']);
  expect(roles(add(waiting, other, fits, second))).toEqual(['my-copy', 'a', 'downloads', 'third']);
  expect(roles(add(waiting, other))).toEqual(['unsloth/small-bnb-4bit', 'a', 'downloads']);
  // by its name first, whatever else fits
  expect(roles(add(waiting, fits, model('small', '8×4')))[0]).toBe('small');
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

// How an adapter is related to a base.

const [base, kitchen, , workshop] = sampleModels as [ModelInfo, ModelInfo, ModelInfo, ModelInfo];
const adapterOf = (baseModel: string): ModelInfo => ({
  ...kitchen,
  adapter: { ...kitchen.adapter!, baseModel },
});
const at = (ref: string) =>
  finetune(ref, { origin: ref.startsWith('samples/') ? 'sample' : ref.includes('@') ? 'hub' : 'local' });

test.each([
  ['samples/base', 'samples/base', 'ok'],
  ['org/model', 'org/model@0123abc', 'ok'],
  ['org/model', 'model', 'ok'],
  ['/home/me/model', 'model', 'ok'],
  ['org/model', 'models/model', 'ok'],
  ['/srv/hub/models--org--model/snapshots/0123abc', 'org/model@0123abc', 'ok'],
  ['org/model', 'models--org--model/snapshots/0123abc', 'ok'],
  ['org/model', 'models--other--model/snapshots/0123abc', 'plain'],
  ['org/model', 'other/model@0123abc', 'plain'],
  ['org/model', 'org/model-instruct', 'plain'],
  ['unsloth/model-unsloth-bnb-4bit', 'org/model@0123abc', 'ok'],
  ['org/model-bnb-4bit', 'model', 'ok'],
  ['TheBloke/model-GPTQ', 'org/model@0123abc', 'ok'],
  ['/home/me/model-AWQ', 'model', 'ok'],
  ['mlx-community/model-4bit', 'org/model@0123abc', 'ok'],
  ['unsloth/model', 'org/model@0123abc', 'ok'],
])('an adapter that names %s on the base %s: %s', (parent, ref, tone) => {
  expect(lineage(adapterOf(parent), at(ref)).tone).toBe(tone);
});

test('shapes decide whether an adapter fits, names only hint', () => {
  const wanted = { ...adapterOf('org/other'), weights: { 'layers.#.q_proj.weight': ['8×4'] } };
  const of = (shape: string) => ({ ...at('model'), weights: { 'model.layers.#.q_proj.weight': [shape] } });
  expect(lineage(wanted, of('8×4'))).toMatchObject({ text: 'fits', tone: 'ok' });
  expect(lineage(wanted, of('4×8'))).toMatchObject({ text: 'fits' });
  expect(lineage(wanted, of('8×8'))).toMatchObject({ text: 'of another base', tone: 'warn' });
  const named = { ...wanted, adapter: { ...kitchen.adapter!, baseModel: 'model' } };
  expect(lineage(named, of('8×8')).text).toBe('of another base');
});

test('an adapter that names no base, and one without a base to compare with, are neither good nor bad', () => {
  const { baseModel: _, ...adapter } = kitchen.adapter!;
  expect(lineage({ ...kitchen, adapter }, base).tone).toBe('plain');
  expect(lineage(kitchen, undefined).tone).toBe('plain');
});

test('a checkpoint of another architecture or depth is told apart', () => {
  expect(lineage(workshop, base).tone).toBe('plain');
  expect(lineage({ ...workshop, family: 'gpt2' }, base)).toMatchObject({
    tone: 'warn',
    text: 'gpt2, not llama',
  });
  expect(lineage({ ...workshop, layers: 8 }, base)).toMatchObject({ tone: 'warn', text: '8 layers, not 6' });
});
