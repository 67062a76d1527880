/** The link in a written card to the hosted studio, whose address is in package.json. */
import { afterEach, expect, test, vi } from 'vitest';
import { parseRecipe } from '../formats/recipe-yaml';
import { openModels } from '../host/models';
import { tinyModel } from '../inputs/memory-models.test.support';
import * as version from '../merge/version';
import { openDiskWith } from '../write/opened-destination';
import { runMerge } from './job';
import { planRecipe } from './recipe-jobs';

afterEach(() => vi.restoreAllMocks());

async function writtenCard(): Promise<string> {
  let card = '';
  openDiskWith(() => ({
    async create(path) {
      const write = async (bytes: Uint8Array) => {
        if (path === 'README.md') card += new TextDecoder().decode(bytes);
      };
      return { write, close: async () => {} };
    },
    commit: async () => {},
    discard: async () => {},
  }));
  const models = openModels(() => ({ url: 'https://hub.invalid' }));
  await models.add(tinyModel('a'), 'a');
  const { recipe } = parseRecipe('merge_method: passthrough\nmodels: [{model: a}]\n');
  const request = { recipe: recipe!, engine: 'cpu' as const, destination: { kind: 'disk' as const } };
  await runMerge(await planRecipe(recipe!, models), request, models, new AbortController().signal, () => {});
  return card;
}

test('every written card leads to the hosted studio; none does where there is none', async () => {
  expect(await writtenCard()).not.toContain('Open this recipe');
  vi.spyOn(version, 'studioAddress').mockReturnValue('https://studio.example/');
  expect(await writtenCard()).toMatch(
    /^# .*\n\n\[Open this recipe in Amalgam\]\(https:\/\/studio\.example\/#recipe=[\w-]+\)\n/m,
  );
});
