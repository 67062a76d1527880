import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { type FakeHub, READER_TOKEN, startFakeHub } from '../../e2e/fake-hub.ts';
import type { Hub } from '../sources/hub-request';
import { type FakeStorage, fakeStorage } from '../store/opfs.test.fake';
import { openDatasets } from './job';

const fixture = (name: string) =>
  new Uint8Array(readFileSync(new URL(`../../e2e/fixtures/dataset/${name}`, import.meta.url)));
const { text: rows } = JSON.parse(new TextDecoder().decode(fixture('rows.json'))) as { text: string[] };
const line = (i: number) => `{"text":"line ${i} of many, by the harbour wall"}\n`;
// more than is stored whole
const large = Buffer.alloc((64 << 20) + 1, Array.from({ length: 1000 }, (_, i) => line(i)).join(''));

let server: FakeHub;
let storage: FakeStorage;

const files = () => ({
  'README.md': '# Tales',
  'data/train.parquet': fixture('snappy.parquet'),
  'data/small.jsonl': Array.from({ length: 9 }, (_, i) => line(i)).join(''),
  'data/notes.txt': 'A note.',
});

beforeAll(async () => {
  server = await startFakeHub({
    models: [
      { id: 'amalgam/tales', dataset: true, files: { ...files(), 'data/large.jsonl': large } },
      { id: 'amalgam/moving', dataset: true, files: files() },
      { id: 'amalgam/closed', dataset: true, gated: 'manual', files: files() },
      { id: 'amalgam/secret', dataset: true, private: true, files: files() },
      { id: 'amalgam/pictures', dataset: true, files: { 'a.png': 'x', 'README.md': 'x' } },
      { id: 'amalgam/tales', files: { 'config.json': '{}' } },
    ],
  });
});
afterAll(() => server.close());
beforeEach(() => {
  server.faults.length = 0;
  server.requests.length = 0;
  storage = fakeStorage();
  vi.stubGlobal('navigator', storage.navigator);
});

const { signal } = new AbortController();
const datasets = (more: Partial<Hub> = {}) =>
  openDatasets(() => ({ url: server.url, sleep: async () => {}, ...more }));
const byteRequests = () => server.requests.filter((r) => r.range !== undefined && r.status === 206);
const read = (
  request: Parameters<ReturnType<typeof datasets>['read']>[0],
  from = datasets(),
  progress = vi.fn(),
) => from.read(request, signal, progress);

describe('a dataset on the Hub', () => {
  test('lists the files that can be read as text, pinned to the commit', async () => {
    const info = await datasets().open('amalgam/tales');
    expect(info.commit).toMatch(/^[0-9a-f]{40}$/);
    expect(info).toMatchObject({
      id: 'amalgam/tales',
      ref: `amalgam/tales@${info.commit}`,
      license: 'mit',
    });
    expect(info.files.map(({ path, format }) => [path, format])).toEqual([
      ['data/large.jsonl', 'lines'],
      ['data/notes.txt', 'text'],
      ['data/small.jsonl', 'lines'],
      ['data/train.parquet', 'parquet'],
    ]);
    const address = `${server.url}/datasets/amalgam/tales/tree/main/data`;
    for (const name of ['datasets/amalgam/tales', address, `amalgam/tales@${info.commit}`]) {
      expect(await datasets().open(name)).toEqual(info);
    }
  });

  test('stays at its commit when the branch moves on', async () => {
    const opened = datasets();
    const { ref, commit } = await opened.open('amalgam/moving');
    await server.push({
      id: 'amalgam/moving',
      dataset: true,
      files: { ...files(), 'data/notes.txt': 'Another.' },
    });
    const request = { ref, path: 'data/notes.txt' };
    expect(await read(request, opened)).toMatchObject({ text: 'A note.', ref });
    expect(await read({ ...request, ref: `amalgam/moving@${commit}` })).toMatchObject({
      text: 'A note.',
      ref,
    });
    expect(await read({ ...request, ref: 'amalgam/moving' })).toMatchObject({ text: 'Another.' });
  });

  test('its parquet and jsonl files are read by column, kept, and not asked for again', async () => {
    const progress = vi.fn();
    const request = { ref: 'amalgam/tales', path: 'data/train.parquet', column: 'text' };
    expect(await read(request, datasets(), progress)).toMatchObject({
      text: rows.join('\n\n'),
      column: 'text',
      rows: 40,
      whole: true,
    });
    expect(progress).toHaveBeenLastCalledWith(
      expect.objectContaining({ phase: 'downloading', secondsLeft: 0 }),
    );
    const small = { ref: 'amalgam/tales', path: 'data/small.jsonl', rows: 2 };
    const two = await read(small);
    expect(two).toMatchObject({ rows: 2, whole: false });
    server.requests.length = 0;
    expect(await read(small)).toEqual(two);
    await read(request);
    expect(byteRequests()).toEqual([]);
  });

  test('of a large file only the beginning comes, by Range', async () => {
    const { text } = await read({ ref: 'amalgam/tales', path: 'data/large.jsonl', characters: 1000 });
    expect(text).toHaveLength(1000);
    expect(text.startsWith('line 0 of many, by the harbour wall\n\nline 1 of')).toBe(true);
    expect(byteRequests().map((r) => r.range)).toContain(`bytes=0-${(1 << 18) - 1}`);
    expect(byteRequests().every((r) => r.range === `bytes=0-${(1 << 18) - 1}`)).toBe(true);
  });

  test('its columns are known without reading the rest', async () => {
    const opened = datasets();
    expect(await opened.columns('amalgam/tales', 'data/train.parquet')).toEqual({
      columns: ['text', 'title'],
      conversations: null,
      rows: 40,
    });
    expect(await opened.columns('amalgam/tales', 'data/large.jsonl')).toEqual({
      columns: ['text'],
      conversations: null,
      rows: null,
    });
    expect(await opened.columns('amalgam/tales', 'data/notes.txt')).toEqual({
      columns: [],
      conversations: null,
      rows: null,
    });
  });

  test('what cannot be had is said by its name', async () => {
    const code = (promise: Promise<unknown>) =>
      promise.then(
        () => 'fine',
        (thrown: { code?: string }) => thrown.code,
      );
    const path = 'data/notes.txt';
    expect(await code(datasets().open('no dataset at all'))).toBe('UnsafeName');
    expect(await code(datasets().open('amalgam/missing'))).toBe('Unauthorized');
    expect(await code(datasets().open('amalgam/tales@nowhere'))).toBe('NotFound');
    expect(await code(datasets().open('amalgam/pictures'))).toBe('DatasetUnsupported');
    expect(await code(datasets().open('amalgam/secret'))).toBe('Unauthorized');
    expect(await code(read({ ref: 'amalgam/closed', path }))).toBe('Gated');
    expect(await code(read({ ref: 'amalgam/tales', path: 'data/none.txt' }))).toBe('NotFound');
    expect(await code(read({ ref: 'amalgam/tales', path, characters: 0 }))).toBe('Usage');
    const reader = datasets({ token: READER_TOKEN });
    expect(await code(read({ ref: 'amalgam/closed', path }, reader))).toBe('fine');
    expect(await code(read({ ref: 'amalgam/secret', path }, reader))).toBe('fine');
  });

  test('stops when asked', async () => {
    const stop = new AbortController();
    const opened = datasets();
    const { ref } = await opened.open('amalgam/tales');
    stop.abort();
    const reading = opened.read({ ref, path: 'data/large.jsonl' }, stop.signal, vi.fn());
    await expect(reading).rejects.toMatchObject({ code: 'Canceled' });
  });
});
