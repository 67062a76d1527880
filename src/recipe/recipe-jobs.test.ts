import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, beforeEach, expect, test, vi } from 'vitest';
import { type FakeHub, startFakeHub } from '../../e2e/fake-hub.ts';
import { copyOf } from '../formats/recipe';
import { openModels } from '../host/models';
import { foldersFromFiles } from '../sources/local-folder';
import { fakeStorage } from '../store/opfs.test.fake';
import { recipePlanReport } from './recipe-jobs';

const base = fileURLToPath(new URL('../../public/samples/base/', import.meta.url));
interface Tokenizer {
  model: { vocab: Record<string, number> };
  added_tokens: object[];
}
const PAD = {
  ...{ id: 1024, content: '[PAD]', single_word: false, lstrip: false, rstrip: false },
  normalized: false,
  special: true,
};
const SAYINGS: [string, (json: Tokenizer) => void, string][] = [
  ['TokensBeyondRows', ({ model }) => Object.assign(model.vocab, { zzz: 5000 }), 'error'],
  ['TokensBeyondRows', ({ added_tokens }) => added_tokens.push(PAD), 'warning'],
  ['TokensShareId', ({ model }) => Object.assign(model.vocab, { he: 501 }), 'warning'],
  ['TokensRenumbered', ({ added_tokens }) => added_tokens.push({ ...PAD, id: 9000 }), 'warning'],
  ['SpecialTokenUnknown', ({ model }) => Object.assign(model.vocab, { x: 0 }), 'warning'],
];

let server: FakeHub;
const files = async (i: number) => {
  const names = ['config.json', 'model.safetensors', 'tokenizer.json', 'tokenizer_config.json'];
  const read = await Promise.all(names.map(async (name) => [name, await readFile(base + name)] as const));
  const made: Record<string, Uint8Array<ArrayBuffer> | string> = Object.fromEntries(read);
  const json = JSON.parse(String(made['tokenizer.json'])) as Tokenizer;
  SAYINGS[i]![1](json);
  made['tokenizer.json'] = JSON.stringify(json);
  if (SAYINGS[i]![0] === 'SpecialTokenUnknown') made['tokenizer_config.json'] = '{"eos_token": "<end>"}';
  return made;
};

beforeAll(async () => {
  const models = SAYINGS.map(async (_, i) => ({ id: `amalgam/odd${i}`, files: await files(i) }));
  server = await startFakeHub({ models: await Promise.all(models) });
});
afterAll(() => server.close());
beforeEach(() => vi.stubGlobal('navigator', fakeStorage().navigator));

test.each(SAYINGS.map(([code, , severity], i) => [code, severity, i] as const))(
  'what a plan says of a tokenizer (%s, %s) is said of one on a hub when it is going to be merged',
  async (code, severity, i) => {
    const said = { code, severity };
    const local = openModels(() => ({ url: 'http://127.0.0.1:9' }));
    const given = Object.entries(await files(i)).map(([path, content]) => ({
      path: `odd/${path}`,
      file: new File([content], path),
    }));
    await local.add(foldersFromFiles(given)[0]!);
    const here = await recipePlanReport(copyOf('odd'), local);
    expect(here.problems).toContainEqual(expect.objectContaining(said));

    const models = openModels(() => ({ url: server.url }));
    const { ref } = await models.addHub(`amalgam/odd${i}`);
    const fetched = () =>
      server.requests.filter(({ path }) => path.includes(`odd${i}/`) && path.endsWith('/tokenizer.json'))
        .length;
    const shown = await recipePlanReport(copyOf(ref), models);
    expect(shown.problems).not.toContainEqual(expect.objectContaining(said));
    expect(fetched()).toBe(0);
    const merged = await recipePlanReport(copyOf(ref), models, true);
    expect(merged.problems).toContainEqual(expect.objectContaining(said));
    expect(merged.clean).toBe(here.clean);
  },
);
