/** The order in which a merge writes its files: what is cut off anywhere must not load as a model. */
import { expect, test } from 'vitest';
import { parseRecipe } from '../formats/recipe-yaml';
import { openModels } from '../host/models';
import { memoryFolder, tinyModel } from '../inputs/memory-models.test.support';
import { writeSmallFiles } from '../merge/run/output-files';
import type { MergeRequest } from '../reports/merge';
import { findFile } from '../sources/model-folder';
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

test.each([
  ['tokenizer.json', 'version https://git-lfs.github.com/spec/v1\noid sha256:0\n', 'pointer'],
  ['tokenizer.json', '{"model": {', 'cut off'],
  ['generation_config.json', '<!DOCTYPE html><html></html>', 'web page'],
  ['merges.txt', '# xet version 0\n', 'Xet'],
])(
  '%s that is %s is found when it is copied, of a hub too, and is not written',
  async (name, content, why) => {
    const folder = memoryFolder('m', { [name]: content });
    const created: string[] = [];
    const destination: Destination = {
      async create(path) {
        created.push(path);
        return { write: async () => {}, close: async () => {} };
      },
      commit: async () => {},
      discard: async () => {},
    };
    const models = { ...openModels(() => ({ url: 'https://hub.invalid' })) };
    models.file = () => ({ folder, file: findFile(folder, name)! });
    const { signal } = new AbortController();
    const extras = [{ path: name, content: { folder: 'm', file: name } }];
    await expect(writeSmallFiles(extras, models, destination, signal)).rejects.toMatchObject({
      message: expect.stringContaining(why),
    });
    expect(created).toEqual([]);
  },
);
