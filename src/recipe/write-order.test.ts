/** The order in which a merge writes its files: what is cut off anywhere must not load as a model. */
import { expect, test } from 'vitest';
import { parseRecipe } from '../formats/recipe-yaml';
import { openModels } from '../host/models';
import { tinyModel } from '../inputs/memory-models.test.support';
import type { MergeRequest } from '../reports/merge';
import type { Destination } from '../write/destination';
import { openDiskWith } from '../write/opened-destination';
import { runMerge } from './job';
import { planRecipe } from './recipe-jobs';

/** Begins of files, and the commit, of one merge. */
async function written(amalgam: string): Promise<string[]> {
  const acts: string[] = [];
  const destination: Destination = {
    async create(path) {
      acts.push(path);
      return { write: async () => {}, close: async () => {} };
    },
    commit: async () => void acts.push('commit'),
    discard: async () => void acts.push('discard'),
  };
  openDiskWith(() => destination);
  const models = openModels(() => ({ url: 'https://hub.invalid' }));
  for (const name of ['a', 'b']) await models.add(tinyModel(name), name);
  const contributors = ['a', 'b'].map((model) => `{model: ${model}, parameters: {weight: 1}}`);
  const { recipe } = parseRecipe(`merge_method: linear\nmodels: [${contributors}]\n${amalgam}`);
  const plan = await planRecipe(recipe!, models);
  const request: MergeRequest = {
    recipe: recipe!,
    engine: 'cpu',
    destination: { kind: 'disk' },
  };
  await runMerge(plan, request, models, new AbortController().signal, () => {});
  expect(new Set(acts).size).toBe(acts.length);
  return acts;
}

const isWeights = (path: string) => path.endsWith('.safetensors');

test('one shard is begun after every other file', async () => {
  const acts = await written('');
  expect(acts.slice(-2)).toEqual(['model.safetensors', 'commit']);
  expect(acts).toContain('config.json');
});

test('of several shards the index, which makes them a model, comes last', async () => {
  const acts = await written('amalgam: {shard_bytes: 400}\n');
  expect(acts.slice(-2)).toEqual(['model.safetensors.index.json', 'commit']);
  const first = acts.findIndex(isWeights);
  expect(acts.slice(first, -2).every(isWeights)).toBe(true);
  expect(acts.slice(first, -2).length).toBeGreaterThan(1);
  expect(acts.slice(0, first)).toContain('config.json');
});
