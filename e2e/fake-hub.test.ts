import { downloadFile, HubApiError, listFiles, listModels, modelInfo } from '@huggingface/hub';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type FakeHub, READER_TOKEN, startFakeHub } from './fake-hub.ts';

const weights = Uint8Array.from({ length: 5000 }, (_, i) => i & 0xff);
let hub: FakeHub;

beforeAll(async () => {
  hub = await startFakeHub({
    pageSize: 2,
    models: [
      { id: 'a/one', files: { 'w.bin': weights, 'sub/x.txt': 'x', 'y.txt': 'y' }, downloads: 2, tags: ['t'] },
      { id: 'a/two', files: { 'y.txt': 'y' }, downloads: 1, gated: 'auto' },
      { id: 'b/three', files: { 'y.txt': 'y' }, private: true },
    ],
  });
});
afterAll(() => hub.close());

/** Everything an async generator yields. */
async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const list: T[] = [];
  for await (const item of items) list.push(item);
  return list;
}

test('the Hub library searches, with pages, filters and tokens', async () => {
  const found = async (more: Parameters<typeof listModels>[0]) =>
    (await all(listModels({ hubUrl: hub.url, ...more }))).map((m) => m.name);
  expect(await found({})).toEqual(['a/one', 'a/two']);
  expect(await found({ search: { tags: ['t'] } })).toEqual(['a/one']);
  expect(await found({ search: { owner: 'b' }, accessToken: READER_TOKEN })).toEqual(['b/three']);
});

test('the Hub library resolves a revision and lists its tree over several pages', async () => {
  const info = await modelInfo({ name: 'a/one', hubUrl: hub.url, additionalFields: ['sha', 'filePaths'] });
  expect(info.filePaths).toEqual(['sub/x.txt', 'w.bin', 'y.txt']);
  const entries = await all(
    listFiles({ repo: 'a/one', revision: info.sha, recursive: true, hubUrl: hub.url }),
  );
  expect(entries.map((e) => `${e.type} ${e.path}`).sort()).toEqual([
    'directory sub',
    'file sub/x.txt',
    'file w.bin',
    'file y.txt',
  ]);
  expect(entries.find((e) => e.path === 'w.bin')?.lfs?.size).toBe(5000);
});

test('the Hub library downloads parts of a file through both redirects', async () => {
  const large = await downloadFile({ repo: 'a/one', path: 'w.bin', hubUrl: hub.url, xet: false });
  expect(new Uint8Array(await (large as Blob).slice(100, 200).arrayBuffer())).toEqual(
    weights.slice(100, 200),
  );
  const small = await downloadFile({ repo: 'a/one', path: 'sub/x.txt', hubUrl: hub.url, xet: false });
  expect(await small?.text()).toBe('x');
});

test('the Hub library sees the statuses of gated, private and missing things', async () => {
  const status = (promise: Promise<unknown>) =>
    promise.then(
      () => 200,
      (e: unknown) => (e instanceof HubApiError ? e.statusCode : e),
    );
  const file = (repo: string, path: string) =>
    status(
      downloadFile({ repo, path, hubUrl: hub.url, xet: false }).then((blob) => blob ?? Promise.reject(404)),
    );
  expect(await file('a/one', 'missing')).toBe(404);
  expect(await file('a/two', 'y.txt')).toBe(401);
  expect(await status(modelInfo({ name: 'b/three', hubUrl: hub.url }))).toBe(401);
  expect(await status(modelInfo({ name: 'a/one', revision: 'gone', hubUrl: hub.url }))).toBe(404);
});

test('pages on another origin may ask with a range and a token, and read what the Hub exposes', async () => {
  const preflight = await fetch(`${hub.url}/a/one/resolve/main/w.bin`, { method: 'OPTIONS' });
  expect(preflight.status).toBe(204);
  expect(preflight.headers.get('Access-Control-Allow-Headers')).toContain('authorization,range');
  const answer = await fetch(`${hub.url}/a/one/resolve/main/y.txt`, {
    headers: { Origin: 'https://page.example' },
  });
  expect(answer.headers.get('Access-Control-Allow-Origin')).toBe('https://page.example');
  expect(answer.headers.get('Access-Control-Expose-Headers')).toContain('Content-Range');
  expect(answer.headers.get('Access-Control-Expose-Headers')).not.toContain('RateLimit');
  const cdn = await fetch(`${hub.url}/a/one/resolve/main/w.bin`, { headers: { Range: 'bytes=0-0' } });
  expect(new URL(cdn.url).origin).toBe(hub.cdnUrl);
  expect(cdn.headers.get('Access-Control-Allow-Origin')).toBe('*');
});
