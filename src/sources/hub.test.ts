import { createHash } from 'node:crypto';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { SAMPLES } from '../../e2e/disk-folder';
import {
  type FakeHub,
  READER_TOKEN,
  STRANGER_TOKEN,
  sampleModels,
  startFakeHub,
} from '../../e2e/fake-hub.ts';
import { openHubModel, searchModels } from './hub';
import type { Hub } from './hub-request';
import { findFile } from './model-folder';

let server: FakeHub;

beforeAll(async () => {
  server = await startFakeHub({ models: sampleModels(SAMPLES), pageSize: 4 });
});
afterAll(() => server.close());
afterEach(() => {
  server.faults.length = 0;
  server.requests.length = 0;
});

const hub = (more: Partial<Hub> = {}): Hub => ({ url: server.url, sleep: async () => {}, ...more });
const ids = async (query: Partial<Parameters<typeof searchModels>[1]>, at = hub()) =>
  (await searchModels(at, { text: '', limit: 20, ...query })).map((hit) => hit.id);

describe('search', () => {
  test('finds by text, most downloaded first, with the facts of a hit', async () => {
    expect(await ids({ text: 'AMALGAM' })).toEqual([
      'amalgam/base',
      'amalgam/kitchen',
      'amalgam/harbour',
      'amalgam/workshop',
      'amalgam/gated',
    ]);
    const [base] = await searchModels(hub(), { text: ' base ', limit: 20 });
    expect(base).toEqual({
      id: 'amalgam/base',
      downloads: 900,
      likes: 9,
      updatedAt: '2026-01-01T00:00:00.000Z',
      gated: false,
      private: false,
      parameters: 1_238_656,
    });
  });

  test('asks for safetensors models only, and stops at the limit', async () => {
    expect(await ids({ limit: 2 })).toEqual(['amalgam/base', 'amalgam/kitchen']);
    expect(server.requests).toHaveLength(1);
    const asked = new URLSearchParams(server.requests[0]?.path.split('?')[1]);
    expect(asked.getAll('filter')).toEqual(['safetensors']);
  });

  test('finds what is derived from a base', async () => {
    const base = 'amalgam/base';
    expect(await ids({ derivedFrom: { base, kind: 'adapter' } })).toEqual([
      'amalgam/kitchen',
      'amalgam/harbour',
    ]);
    expect(await ids({ derivedFrom: { base, kind: 'finetune' } })).toEqual(['amalgam/workshop']);
    expect(await ids({ text: 'harb', derivedFrom: { base, kind: 'adapter' } })).toEqual(['amalgam/harbour']);
  });

  test('shows gates, and private models only to whom may read them', async () => {
    const [gated] = await searchModels(hub(), { text: 'gated', limit: 5 });
    expect(gated?.gated).toBe('manual');
    expect(await ids({ text: 'private' })).toEqual([]);
    expect(await ids({ text: 'private' }, hub({ token: READER_TOKEN }))).toEqual(['amalgam/private']);
  });

  test('a search that is canceled ends as Canceled', async () => {
    const searching = searchModels(hub(), { text: '', limit: 5 }, AbortSignal.abort());
    await expect(searching).rejects.toMatchObject({ code: 'Canceled' });
  });
});

describe('opening a model', () => {
  test('a hub that nobody answers at is said at once, with no wait between tries', async () => {
    const server = createServer().listen(0);
    const { port } = server.address() as AddressInfo;
    await new Promise((resolve) => server.close(resolve));
    const waits: unknown[] = [];
    const nobody = { url: `http://127.0.0.1:${port}`, onWait: (wait: unknown) => void waits.push(wait) };
    await expect(openHubModel(nobody, 'models/missing')).rejects.toMatchObject({
      code: 'Offline',
      message: `127.0.0.1:${port} cannot be reached, so models/missing could not be read.`,
    });
    expect(waits).toEqual([]);
  });

  test('pins the commit and lists every file with size and checksum', async () => {
    const model = await openHubModel(hub(), 'amalgam/base');
    expect(model.path).toBe('amalgam/base');
    expect(model.facts.license).toBe('mit');
    expect(model.family).toMatchObject([{ id: 'amalgam/base', license: 'mit', parents: [] }]);
    expect(model.origin).toMatchObject({ kind: 'hub', repo: 'amalgam/base', revision: 'main' });
    expect(model.origin.commit).toMatch(/^[0-9a-f]{40}$/);
    expect(model.files).toHaveLength(6);
    expect((await openHubModel(hub(), 'amalgam/gated')).facts).toEqual({ license: 'mit', gated: true });
    for (const file of model.files) {
      const bytes = await readFile(`${SAMPLES}/base/${file.path}`);
      expect(file.byteLength).toBe(bytes.length);
      const git = createHash('sha1').update(`blob ${bytes.length}\0`).update(bytes).digest('hex');
      const sha256 = createHash('sha256').update(bytes).digest('hex');
      expect({ sha256: file.sha256, gitSha1: file.gitSha1 }).toEqual(
        file.path.endsWith('.safetensors') ? { sha256 } : { gitSha1: git },
      );
    }
    expect(server.requests.some((r) => r.path.includes('/resolve/') || r.server === 'cdn')).toBe(false);
  });

  test('of a repository with a model in many types one file is opened', async () => {
    const files = await mkdtemp(join(tmpdir(), 'amalgam-hub-'));
    const parts = ['a-Q8_0-00001-of-00002.gguf', 'a-Q8_0-00002-of-00002.gguf'];
    const names = ['README.md', 'a-Q4_0.gguf', ...parts, 'config.json'];
    for (const name of names) await writeFile(join(files, name), name);
    const own = await startFakeHub({ models: [{ id: 'amalgam/types', files, downloads: 1 }] });
    const open = (id: string) => openHubModel(hub({ url: own.url }), id);
    try {
      const whole = await open('amalgam/types/a-Q4_0.gguf');
      expect(whole.path).toBe('amalgam/types/a-Q4_0.gguf');
      expect(whole.origin.repo).toBe('amalgam/types');
      const paths = (of: typeof whole) => of.files.map(({ path }) => path).sort();
      expect(paths(whole)).toEqual(['README.md', 'a-Q4_0.gguf', 'config.json']);
      expect(paths(await open(`amalgam/types/${parts[1]}`))).toEqual(['README.md', ...parts, 'config.json']);
      await expect(open('amalgam/types/b.gguf')).rejects.toMatchObject({ code: 'NotFound' });
    } finally {
      await own.close();
      await rm(files, { recursive: true });
    }
  });

  test('follows the pages of a long listing', async () => {
    await openHubModel(hub(), 'amalgam/base');
    expect(server.requests.filter((r) => r.path.includes('/tree/'))).toHaveLength(2);
  });

  test('R31: reads at the pinned commit after the branch has moved', async () => {
    await server.push({ id: 'amalgam/moving', files: { 'config.json': 'first', 'a/b c#.bin': 'one' } });
    const model = await openHubModel(hub(), 'amalgam/moving');
    await server.push({ id: 'amalgam/moving', files: { 'config.json': 'other', 'a/b c#.bin': 'two' } });
    const text = async (path: string) => {
      const source = findFile(model, path)?.open();
      return new TextDecoder().decode(await source?.read(0, source.byteLength));
    };
    expect(await text('config.json')).toBe('first');
    expect(await text('a/b c#.bin')).toBe('one');
    const again = await openHubModel(hub(), 'amalgam/moving', model.origin.commit);
    expect(again.files.map((f) => f.path)).toEqual(model.files.map((f) => f.path));
    expect(again.origin).toMatchObject({ revision: model.origin.commit, commit: model.origin.commit });
  });

  test.each([
    ['amalgam/nothing', undefined, undefined, 'Unauthorized', 'or it is private'],
    ['amalgam/private', undefined, undefined, 'Unauthorized', 'or it is private'],
    ['amalgam/private', undefined, STRANGER_TOKEN, 'NotFound', 'or it is private'],
    ['amalgam/nothing', undefined, READER_TOKEN, 'NotFound', 'or it is private'],
    ['amalgam/base', undefined, 'hf_wrong', 'Unauthorized', 'does not accept your access token'],
    ['amalgam/base', 'no-such-branch', undefined, 'NotFound', 'no such revision'],
    ['not a model', undefined, undefined, 'UnsafeName', 'does not name a model'],
  ])('%s@%s with token %s: %s', async (id, revision, token, code, words) => {
    const opening = openHubModel(hub(token === undefined ? {} : { token }), id, revision);
    await expect(opening).rejects.toMatchObject({ code, message: expect.stringContaining(words) });
  });

  test('a private model opens with a token that may read it', async () => {
    const model = await openHubModel(hub({ token: READER_TOKEN }), 'amalgam/private');
    expect(model.files).toHaveLength(6);
  });

  test('a file that is not there is named', async () => {
    const missing = redirectTo(`${server.url}/amalgam/base/resolve/main/missing.json`);
    const { files } = await openHubModel(hub({ fetch: missing }), 'amalgam/base');
    await expect(files[0]?.open().read(0, 1)).rejects.toMatchObject({
      code: 'NotFound',
      message: expect.stringContaining(`amalgam/base: ${files[0]?.path}`),
    });
  });

  test('rate limits and server errors of the API are waited out', async () => {
    const waits: number[] = [];
    server.faults.push(
      { path: '/api/models/amalgam/base/revision/HEAD', fault: { kind: 'status', status: 502 }, times: 2 },
      {
        path: '/api/models/amalgam/base/revision/HEAD',
        fault: { kind: 'status', status: 429, headers: { RateLimit: '"api";r=0;t=12' } },
      },
    );
    await openHubModel(hub({ onWait: (wait) => void waits.push(wait.seconds) }), 'amalgam/base');
    expect(waits).toHaveLength(3);
    expect(waits[2]).toBe(12);
  });
});

describe('a hub that is not to be trusted', () => {
  const commit = 'c'.repeat(40);
  const file = { type: 'file', path: 'config.json', size: 2, oid: 'a'.repeat(40) };
  /** A hub that answers the two questions of opening a model with the given values. */
  const lying = (info: unknown, tree: unknown, link?: string): Hub => ({
    url: 'https://hub.example',
    sleep: async () => {},
    fetch: async (input) =>
      Response.json(String(input).includes('/tree/') ? tree : info, { headers: link ? { Link: link } : {} }),
  });
  const info = { id: 'a/b', sha: commit, private: false, tags: [], lastModified: '2026-01-01' };

  test('is read when it answers right', async () => {
    expect((await openHubModel(lying(info, [file]), 'a/b')).files).toHaveLength(1);
  });

  test.each([
    ['no commit', { ...info, sha: undefined }, [file], 'HubError'],
    ['a commit that is a path', { ...info, sha: '../../evil' }, [file], 'HubError'],
    ['another model that is a path', { ...info, id: '../../evil' }, [file], 'UnsafeName'],
    ['a file outside', info, [{ ...file, path: '../x' }], 'UnsafePath'],
    ['a negative size', info, [{ ...file, size: -1 }], 'HubError'],
    ['a size that is text', info, [{ ...file, size: '2' }], 'HubError'],
    ['a checksum that is not one', info, [{ ...file, lfs: { oid: 'x', size: 2 } }], 'HubError'],
    ['no list', info, { files: [] }, 'HubError'],
    ['null', null, [file], 'HubError'],
  ])('%s: %s', async (_, answer, tree, code) => {
    await expect(openHubModel(lying(answer, tree), 'a/b')).rejects.toMatchObject({ code });
  });

  test('a login page instead of JSON', async () => {
    const at = { ...lying(info, []), fetch: async () => new Response('<html>') };
    await expect(openHubModel(at, 'a/b')).rejects.toMatchObject({ code: 'HubError' });
  });

  test('an answer without a body is no lost connection', async () => {
    for (const status of [204, 205]) {
      const at = { ...lying(info, []), fetch: async () => new Response(null, { status }) };
      await expect(openHubModel(at, 'a/b')).rejects.toMatchObject({ code: 'HubError' });
    }
  });

  test('a token that no header can hold is said before anything is asked', async () => {
    let asked = 0;
    const fetch = async () => Response.json([++asked]);
    for (const token of ['hf_ab…c', 'hf_a b', 'hf_a\nb']) {
      await expect(openHubModel({ ...lying(info, []), fetch, token }, 'a/b')).rejects.toMatchObject({
        code: 'Unauthorized',
        message: expect.stringContaining('characters'),
      });
    }
    expect(asked).toBe(0);
  });

  test('a next page on another server is not followed', async () => {
    const at = lying(info, [file], '<https://evil.example/api>; rel="next"');
    await expect(openHubModel({ ...at, token: 'hf_secret' }, 'a/b')).rejects.toMatchObject({
      code: 'HubError',
      message: expect.stringContaining('https://evil.example'),
    });
  });

  test('pages without end are stopped', async () => {
    const many = Array.from({ length: 5000 }, (_, i) => ({ ...file, path: `${i}.txt` }));
    const at = lying(info, many, '<https://hub.example/api/models/a/b/tree/x>; rel="next"');
    await expect(openHubModel(at, 'a/b')).rejects.toMatchObject({ code: 'LimitExceeded' });
  });

  test('R33: a small answer that unpacks to a huge one is stopped', async () => {
    const bomb = gzipSync(Buffer.alloc(80 * 1024 * 1024, ' '));
    const unpacked = () => new Blob([bomb]).stream().pipeThrough(new DecompressionStream('gzip'));
    const at = { ...lying(info, []), fetch: async () => new Response(unpacked()) };
    await expect(openHubModel(at, 'a/b')).rejects.toMatchObject({ code: 'LimitExceeded' });
  });
});

test('R32: the token is not sent to a hub address on another port', async () => {
  const seen: (string | null)[] = [];
  const at = hub({
    token: READER_TOKEN,
    fetch: (input, init) => {
      seen.push(new Headers(init?.headers).get('Authorization'));
      return fetch(input, init);
    },
  });
  const model = await openHubModel(at, 'amalgam/base');
  await findFile(model, 'model.safetensors')?.open().read(0, 8);
  expect(seen.every((value) => value === `Bearer ${READER_TOKEN}`)).toBe(true);
  at.url = server.cdnUrl;
  await findFile(model, 'model.safetensors')?.open().read(0, 8);
  expect(seen.at(-1)).toBe(null);
});

/** A fetch that answers every download with another address. */
function redirectTo(url: string): typeof fetch {
  return (input, init) => fetch(String(input).includes('/resolve/') ? url : String(input), init);
}
