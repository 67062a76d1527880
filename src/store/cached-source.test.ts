import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { SAMPLES } from '../../e2e/disk-folder';
import { type FakeHub, READER_TOKEN, sampleModels, startFakeHub } from '../../e2e/fake-hub.ts';
import { openHubModel } from '../sources/hub';
import type { Hub } from '../sources/hub-request';
import { foldersFromFiles } from '../sources/local-folder';
import { findFile, type ModelFolder } from '../sources/model-folder';
import { ensureBlob, listBlobs } from './blobs';
import { bytesToDownload, cleanSmallFiles, openCached, openForHeader, throughCache } from './cached-source';
import { contentOf, type FakeStorage, fakeStorage, rot } from './opfs.test.fake';
import { storageFolder, writeWhole } from './opfs-file';

const WEIGHTS = 'model.safetensors';
let server: FakeHub;
let storage: FakeStorage;

beforeAll(async () => {
  server = await startFakeHub({ models: sampleModels(SAMPLES) });
});
afterAll(() => server.close());
beforeEach(() => {
  server.faults.length = 0;
  server.requests.length = 0;
  storage = fakeStorage();
  vi.stubGlobal('navigator', storage.navigator);
});

const hub = (): Hub => ({ url: server.url, sleep: async () => {} });
const onDisk = (path: string) => readFile(`${SAMPLES}/base/${path}`);
const byteRequests = () => server.requests.filter((r) => !r.path.startsWith('/api/models'));

function file(folder: ModelFolder, path: string) {
  const found = findFile(folder, path);
  if (!found) throw new Error(`no ${path}`);
  return found;
}

/** Reads a file through the cache and compares it with the one on the disk. */
async function readThrough(folder: ModelFolder, path: string): Promise<void> {
  const source = await openCached(folder, file(folder, path));
  try {
    expect(Buffer.from(await source.read(0, source.byteLength)).equals(await onDisk(path))).toBe(true);
  } finally {
    source.close();
  }
}

describe('a Hub model', () => {
  test('is downloaded once; a second session reads the cache without a request for bytes', async () => {
    const first = await openHubModel(hub(), 'amalgam/base');
    const bytes = async (folder: ModelFolder) =>
      (await Promise.all(folder.files.map(bytesToDownload))).reduce((a, b) => a + b);
    expect(await bytes(first)).toBe(first.files.reduce((sum, f) => sum + f.byteLength, 0));
    for (const { path } of first.files) await readThrough(first, path);
    expect(byteRequests().length).toBeGreaterThan(0);
    expect(await bytes(first)).toBe(0);

    server.requests.length = 0;
    const second = await openHubModel(hub(), 'amalgam/base');
    for (const { path } of second.files) {
      await readThrough(second, path);
      const header = await openForHeader(second, file(second, path));
      await header.read(0, 8);
      header.close();
    }
    expect(byteRequests()).toEqual([]);
  });

  test('shares a blob with another model that has the same file', async () => {
    const base = await openHubModel(hub(), 'amalgam/base');
    await readThrough(base, WEIGHTS);
    const copy = await openHubModel({ ...hub(), token: READER_TOKEN }, 'amalgam/private');
    server.requests.length = 0;
    await readThrough(copy, WEIGHTS);
    expect(byteRequests()).toEqual([]);
  });

  test('shows its headers without a download', async () => {
    const base = await openHubModel(hub(), 'amalgam/base');
    const header = await openForHeader(base, file(base, WEIGHTS));
    expect(Buffer.from(await header.read(0, 8)).equals((await onDisk(WEIGHTS)).subarray(0, 8))).toBe(true);
    header.close();
    expect(byteRequests().map((r) => r.range)).toEqual(['bytes=0-7', 'bytes=0-7']);
    expect(await listBlobs()).toEqual([]);
  });

  test('R25: goes on after a download that broke off, without asking for what has come again', async () => {
    const base = await openHubModel(hub(), 'amalgam/base');
    const weights = file(base, WEIGHTS);
    const sizes = { piece: 125_000, request: 500_000 };
    const wanted = {
      sha256: weights.sha256 ?? '',
      byteLength: weights.byteLength,
      name: WEIGHTS,
      source: weights.open(),
    };
    const controller = new AbortController();
    const onBytes = (bytes: number) => {
      // three pieces under way are not on the disk yet
      if (bytes >= 2 * sizes.request + 3 * sizes.piece) controller.abort();
    };
    await expect(ensureBlob(wanted, { signal: controller.signal, onBytes }, sizes)).rejects.toMatchObject({
      code: 'Canceled',
    });
    const kept = weights.byteLength - (await bytesToDownload(weights));
    expect(kept).toBeGreaterThanOrEqual(2 * sizes.request);

    server.requests.length = 0;
    await ensureBlob(wanted, {}, sizes);
    const again = byteRequests().filter((r) => r.server === 'cdn');
    expect(again.reduce((sum, { sent }) => sum + sent, 0)).toBe(weights.byteLength - kept);
    await readThrough(base, WEIGHTS);
  });

  test('tells what comes as it comes, also inside of a piece', async () => {
    const base = await openHubModel(hub(), 'amalgam/base');
    const weights = file(base, WEIGHTS);
    const { byteLength } = weights;
    const wanted = { sha256: weights.sha256 ?? '', byteLength, name: WEIGHTS, source: weights.open() };
    const told: number[] = [];
    const sizes = { piece: 1_000_000, request: 4_000_000 };
    await ensureBlob(wanted, { onBytes: (bytes) => told.push(bytes) }, sizes);
    expect(told).toEqual([...told].sort((a, b) => a - b));
    // the network brings at most a few hundred kB at a time
    expect(told.filter((bytes) => bytes % sizes.piece !== 0 && bytes < byteLength).length).toBeGreaterThan(5);
    expect(told.at(-1)).toBe(byteLength);
  });

  test.each([0, 1, 1_000_000, 2_483_295])('survives a cut after %i bytes', async (after) => {
    server.faults.push({ path: `amalgam/base/${WEIGHTS}`, fault: { kind: 'cut', after } });
    await readThrough(await openHubModel(hub(), 'amalgam/base'), WEIGHTS);
    expect(byteRequests().filter((r) => r.server === 'cdn')).toHaveLength(2);
  });

  test('R28: a bit flipped on the way is found, and the file fetched once more', async () => {
    server.faults.push({ path: `amalgam/base/${WEIGHTS}`, fault: { kind: 'flip', at: 1_234_567 } });
    await readThrough(await openHubModel(hub(), 'amalgam/base'), WEIGHTS);
    expect(byteRequests().filter((r) => r.server === 'cdn')).toHaveLength(2);
  });

  test('a file that always arrives altered is an IntegrityError and leaves nothing', async () => {
    const fault = { kind: 'flip', at: 5 } as const;
    server.faults.push(
      { path: `amalgam/base/${WEIGHTS}`, fault, times: Infinity },
      { path: 'amalgam/base/config.json', fault, times: Infinity },
    );
    const base = await openHubModel(hub(), 'amalgam/base');
    for (const path of [WEIGHTS, 'config.json']) {
      await expect(openCached(base, file(base, path))).rejects.toMatchObject({
        code: 'IntegrityError',
        message: expect.stringContaining(path),
      });
      expect(await bytesToDownload(file(base, path))).toBe(file(base, path).byteLength);
    }
    expect(await listBlobs()).toEqual([]);
  });

  test.each([
    ['the first part', 0, 32_768],
    ['a later part', 40_000, 50_000],
    ['all of it', 0, 2_483_296],
  ])(
    'R28: %s came altered before the file was here: it is not used with the right one',
    async (_, begin, end) => {
      const base = await openHubModel(hub(), 'amalgam/base');
      const weights = throughCache(base, file(base, WEIGHTS));
      const use = async () => {
        await weights.open().read(begin, end);
        (await openCached(base, weights)).close();
      };
      server.faults.push({ path: `amalgam/base/${WEIGHTS}`, fault: { kind: 'flip', at: end - 1 } });
      await expect(use()).rejects.toMatchObject({
        code: 'IntegrityError',
        message: expect.stringContaining(WEIGHTS),
      });
      const again = throughCache(base, file(base, WEIGHTS));
      await again.open().read(begin, end);
      (await openCached(base, again)).close();
    },
  );

  test.each([WEIGHTS, 'config.json'])(
    'a listing with another length than %s has in the cache is said, and neither length is read',
    async (path) => {
      const base = await openHubModel(hub(), 'amalgam/base');
      await readThrough(base, path);
      for (const more of [-10, 10]) {
        const { byteLength, ...rest } = file(base, path);
        const listed = { ...rest, byteLength: byteLength + more };
        for (const open of [openCached, openForHeader]) {
          await expect(open(base, listed)).rejects.toMatchObject({
            code: 'IntegrityError',
            message: expect.stringContaining(`lists ${path}`),
          });
        }
      }
    },
  );

  test('a small file that changed on the disk is fetched again', async () => {
    const base = await openHubModel(hub(), 'amalgam/base');
    await readThrough(base, 'config.json');
    const stored = `small-files/${file(base, 'config.json').gitSha1}`;
    expect(contentOf(storage, stored)).toBeDefined();
    rot(storage, stored, 10);
    expect(await bytesToDownload(file(base, 'config.json'))).toBe(773);
    await readThrough(base, 'config.json');
    expect(await bytesToDownload(file(base, 'config.json'))).toBe(0);
  });

  test('R38: the clean keeps whole small files, the newest first, and nothing else', async () => {
    const base = await openHubModel(hub(), 'amalgam/base');
    for (const path of ['config.json', 'tokenizer.json']) await readThrough(base, path);
    const names = ['config.json', 'tokenizer.json'].map((path) => file(base, path).gitSha1!);
    const folder = await storageFolder('small-files');
    for (const odd of [`${names[0]}.crswap`, 'notes.txt', 'f'.repeat(40)]) {
      await writeWhole(folder, odd, new Uint8Array(odd.length === 40 ? 0 : 3), odd);
    }
    expect((await cleanSmallFiles()).sort()).toEqual(
      [`${names[0]}.crswap`, 'notes.txt', 'f'.repeat(40)].sort(),
    );
    expect(await bytesToDownload(file(base, 'config.json'))).toBe(0);
    expect(await cleanSmallFiles(1)).toHaveLength(2);
    expect(await bytesToDownload(file(base, 'config.json'))).toBe(773);
  });

  test('refuses a huge file outside LFS before asking for it', async () => {
    const base = await openHubModel(hub(), 'amalgam/base');
    server.requests.length = 0;
    const huge = { ...file(base, 'config.json'), byteLength: 65 * 1024 * 1024 };
    await expect(openCached(base, huge)).rejects.toMatchObject({ code: 'LimitExceeded' });
    expect(server.requests).toEqual([]);
  });
});

test('a local file is read where it is, and nothing is stored', async () => {
  const [folder] = foldersFromFiles([{ path: 'm/config.json', file: new File(['{"a":1}'], 'config.json') }]);
  if (!folder) throw new Error('m is a model');
  for (const open of [openCached, openForHeader]) {
    const source = await open(folder, file(folder, 'config.json'));
    expect(new TextDecoder().decode(await source.read(0, source.byteLength))).toBe('{"a":1}');
    source.close();
  }
  expect(await bytesToDownload(file(folder, 'config.json'))).toBe(0);
  expect(storage.root.entries.size).toBe(0);
});
