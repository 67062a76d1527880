import * as Comlink from 'comlink';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { cdp } from 'vitest/browser';
import type { StoreRig } from './blobs.test.worker';
import rigUrl from './blobs.test.worker?worker&url';

const MIB = 1024 * 1024;
const SIZE = 5 * MIB + 123;
const SEED = 7;
const workers: Worker[] = [];
/** Name of each worker, and of the lock it holds as long as it lives. */
const names: string[] = [];

function startRig(): Comlink.Remote<StoreRig> {
  const name = crypto.randomUUID();
  const worker = new Worker(rigUrl, { type: 'module', name });
  workers.push(worker);
  names.push(name);
  return Comlink.wrap<StoreRig>(worker);
}

async function blobsFolder(): Promise<FileSystemDirectoryHandle> {
  return (await navigator.storage.getDirectory()).getDirectoryHandle('blobs', { create: true });
}

/** Changes a stored file from outside: the given bytes at an offset, or a new file. */
async function tamper(path: string, at: number, bytes: Uint8Array<ArrayBuffer>): Promise<void> {
  const parts = path.split('/');
  let folder = await blobsFolder();
  for (const part of parts.slice(0, -1)) folder = await folder.getDirectoryHandle(part, { create: true });
  const file = await folder.getFileHandle(parts.at(-1) ?? '', { create: true });
  const stream = await file.createWritable({ keepExistingData: true });
  await stream.write({ type: 'write', position: at, data: bytes });
  await stream.close();
}

async function clear(): Promise<void> {
  for (const worker of workers.splice(0)) worker.terminate();
  const root = await navigator.storage.getDirectory();
  await expect
    .poll(() =>
      root.removeEntry('blobs', { recursive: true }).then(
        () => 'gone',
        (e: unknown) => (e instanceof DOMException && e.name === 'NotFoundError' ? 'gone' : String(e)),
      ),
    )
    .toBe('gone');
}

beforeEach(clear);
afterEach(clear);

describe('a blob in the browser’s storage', () => {
  test('is downloaded, listed, read by ranges, and deleted', async () => {
    const rig = startRig();
    const sha256 = await rig.sha256(SIZE, SEED);
    expect(await rig.ensure(SIZE, SEED, MIB)).toBe('ok');
    expect(await rig.asked()).toBe(6);
    expect(await rig.list()).toEqual([{ sha256, bytes: SIZE, name: `seed ${SEED}`, complete: true }]);

    expect(await rig.open(sha256)).toBe('ok');
    for (const [begin, end] of [
      [0, 8],
      [MIB - 1, MIB + 1],
      [3 * MIB + 5, SIZE],
      [0, SIZE],
    ] as const) {
      expect(await rig.matches(sha256, SEED, begin, end)).toBe('ok');
    }
    expect(await rig.delete(sha256)).toBe('Busy');
    await rig.close(sha256);
    await expect.poll(() => rig.delete(sha256)).toBe('ok');
    expect(await rig.list()).toEqual([]);
  });

  test('is there for the next session without asking its source', async () => {
    expect(await startRig().ensure(SIZE, SEED, MIB)).toBe('ok');
    workers[0]?.terminate();
    const next = startRig();
    expect(await next.ensure(SIZE, SEED, MIB)).toBe('ok');
    expect(await next.asked()).toBe(0);
  });

  test('can be read by two workers at once', async () => {
    const [a, b] = [startRig(), startRig()];
    const sha256 = await a.sha256(SIZE, SEED);
    expect(await a.ensure(SIZE, SEED, MIB)).toBe('ok');
    expect([await a.open(sha256), await b.open(sha256)]).toEqual(['ok', 'ok']);
    expect(await a.matches(sha256, SEED, 100, 5000)).toBe('ok');
    expect(await b.matches(sha256, SEED, 100, 5000)).toBe('ok');
    expect(await b.delete(sha256)).toBe('Busy');
    await a.close(sha256);
    expect(await b.delete(sha256)).toBe('Busy');
  });

  test('is downloaded by one of two workers that want it', async () => {
    const [a, b] = [startRig(), startRig()];
    expect(await Promise.all([a.ensure(SIZE, SEED, MIB), b.ensure(SIZE, SEED, MIB)])).toEqual(['ok', 'ok']);
    expect([await a.asked(), await b.asked()].sort()).toEqual([0, 6]);
  });
});

describe('R25 R47: a download that ends early', () => {
  test('by a cancel: goes on with the pieces that are missing', async () => {
    const rig = startRig();
    const downloading = rig.ensure(20 * MIB, SEED, MIB, 3);
    await expect.poll(async () => (await rig.list())[0]?.bytes ?? 0).toBe(3 * MIB);
    await rig.cancel();
    expect(await downloading).toBe('Canceled');
    await rig.asked();
    const [partial] = await rig.list();
    expect(partial?.complete).toBe(false);
    expect(await rig.ensure(20 * MIB, SEED, MIB)).toBe('ok');
    expect(await rig.asked()).toBe(20 - (partial?.bytes ?? 0) / MIB);
  });

  test('by a killed worker, ten times: another goes on at once and loses nothing that was recorded', async () => {
    const rig = startRig();
    const [size, piece] = [15 * MIB, MIB / 4];
    const present = async () => (await rig.list())[0]?.bytes ?? 0;
    for (let round = 0; round < 10; round++) {
      const before = await present();
      const victim = startRig();
      void victim.ensure(size, SEED, piece, 4);
      await expect.poll(present).toBeGreaterThan(before);
      await new Promise((resolve) => setTimeout(resolve, 3 * round));
      workers.at(-1)?.terminate();
    }
    // a worker that is being ended may still record the piece it was writing
    for (const name of names.slice(-10)) await navigator.locks.request(name, () => {});
    expect(await rig.clean()).toEqual([]);
    const kept = await present();
    expect(kept).toBeGreaterThanOrEqual(10 * piece);
    expect(kept).toBeLessThan(size);
    expect(await rig.ensure(size, SEED, piece)).toBe('ok');
    expect(await rig.asked()).toBe((size - kept) / piece);
    const sha256 = await rig.sha256(size, SEED);
    expect(await rig.open(sha256)).toBe('ok');
    expect(await rig.matches(sha256, SEED, 0, size)).toBe('ok');
  });
});

describe('damage', () => {
  test('one changed byte is found when it is read; its piece alone is fetched again', async () => {
    const rig = startRig();
    const sha256 = await rig.sha256(SIZE, SEED);
    expect(await rig.ensure(SIZE, SEED, MIB)).toBe('ok');
    await rig.asked();
    await tamper(`${sha256}/data`, 2 * MIB + 9, Uint8Array.of(1, 2, 3, 4));

    expect(await rig.open(sha256)).toBe('ok');
    expect(await rig.matches(sha256, SEED, 0, MIB)).toBe('ok');
    expect(await rig.matches(sha256, SEED, 2 * MIB, 2 * MIB + 1)).toBe('IntegrityError');
    await rig.close(sha256);
    expect(await rig.open(sha256)).toBe('NotFound');
    expect(await rig.ensure(SIZE, SEED, MIB)).toBe('ok');
    expect(await rig.asked()).toBe(1);
    expect(await rig.open(sha256)).toBe('ok');
    expect(await rig.matches(sha256, SEED, 0, SIZE)).toBe('ok');
  });

  test('R38: what a crash leaves is cleaned away', async () => {
    const rig = startRig();
    const sha256 = await rig.sha256(SIZE, SEED);
    expect(await rig.ensure(SIZE, SEED, MIB)).toBe('ok');
    const broken = 'ab'.repeat(32);
    await tamper(`${sha256}/done.json.crswap`, 0, new Uint8Array(10)).catch(() => undefined);
    await tamper(`${broken}/journal.json`, 0, new TextEncoder().encode('{"version":1,'));
    await tamper(`${broken}/data`, 0, new Uint8Array(1000));
    expect(await rig.clean()).toContain(`blobs/${broken}`);
    expect((await rig.list()).map((blob) => blob.sha256)).toEqual([sha256]);
    expect(await rig.clean()).toEqual([]);
  });

  test('R37: storage cleared between two sessions only means another download', async () => {
    const rig = startRig();
    expect(await rig.ensure(SIZE, SEED, MIB)).toBe('ok');
    await (await navigator.storage.getDirectory()).removeEntry('blobs', { recursive: true });
    expect(await rig.list()).toEqual([]);
    expect(await rig.ensure(SIZE, SEED, MIB)).toBe('ok');
  });
});

describe('R34 R35: a full storage', () => {
  test('that returns −8 from write, as a private window does', async () => {
    const rig = startRig();
    await rig.breakHandles('write', 4294967288);
    expect(await rig.ensure(SIZE, SEED, MIB)).toBe('StorageFull');
    expect((await rig.list()).filter((blob) => blob.complete)).toEqual([]);
  });

  test('that ignores truncate', async () => {
    const rig = startRig();
    await rig.breakHandles('truncate', 0);
    expect(await rig.ensure(SIZE, SEED, MIB)).toBe('StorageFull');
    expect(await rig.asked()).toBe(0);
  });

  test('by the browser’s own quota: found before the first piece, and over once there is room', async () => {
    const quota = (quotaSize?: number) =>
      cdp().send('Storage.overrideQuotaForOrigin', {
        origin: location.origin,
        ...(quotaSize === undefined ? {} : { quotaSize }),
      });
    const rig = startRig();
    const { usage = 0 } = await navigator.storage.estimate();
    await quota(usage + 2 * MIB);
    try {
      expect(await rig.ensure(SIZE, SEED, MIB)).toBe('StorageFull');
      expect(await rig.asked()).toBe(0);
    } finally {
      await quota();
    }
    expect(await rig.ensure(SIZE, SEED, MIB)).toBe('ok');
  });
});
