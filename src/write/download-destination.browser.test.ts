import * as Comlink from 'comlink';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { cdp } from 'vitest/browser';
import { storageFolder } from '../store/opfs-file';
import type { Rig } from './download-destination.test.worker';
import rigUrl from './download-destination.test.worker?worker&url';
import { cleanOutputs, deleteOutput, listOutputs, openOutputFile } from './finished-outputs';

const workers: Worker[] = [];

function startRig(): Comlink.Remote<Rig> {
  const worker = new Worker(rigUrl, { type: 'module' });
  workers.push(worker);
  return Comlink.wrap<Rig>(worker);
}

const bytes = (...values: number[]) => Uint8Array.from(values);

async function writeOutput(rig: Comlink.Remote<Rig>, name: string): Promise<void> {
  expect(await rig.open(name)).toBe('ok');
  expect(await rig.create('model.safetensors')).toBe('ok');
  expect(await rig.write(bytes(1, 2, 3))).toBe('ok');
  expect(await rig.write(bytes(4))).toBe('ok');
  expect(await rig.close()).toBe('ok');
  expect(await rig.create('original/params.json')).toBe('ok');
  expect(await rig.close()).toBe('ok');
}

/** Limits the storage of the page, until disposed of. */
async function quotaOf(quotaSize: number): Promise<AsyncDisposable> {
  const { origin } = location;
  // ballast: an empty storage is never full
  const root = await navigator.storage.getDirectory();
  await root.getFileHandle('ballast', { create: true });
  await overwrite(root, 'ballast', 'x'.repeat(2000));
  await cdp().send('Storage.overrideQuotaForOrigin', { origin, quotaSize });
  return {
    async [Symbol.asyncDispose]() {
      await cdp().send('Storage.overrideQuotaForOrigin', { origin });
      await root.removeEntry('ballast');
    },
  };
}

async function clear(): Promise<void> {
  for (const worker of workers.splice(0)) worker.terminate();
  const root = await navigator.storage.getDirectory();
  for await (const name of root.keys()) {
    if (name === 'outputs')
      await expect.poll(() => root.removeEntry(name, { recursive: true }).then(() => 1)).toBe(1);
  }
}

beforeEach(clear);
afterEach(clear);

describe('openDownloadDestination', () => {
  test('a committed output is listed with its files and opened as a disk-backed file', async () => {
    const rig = startRig();
    await writeOutput(rig, 'merged');
    expect(await listOutputs()).toEqual([{ name: 'merged', bytes: 4, complete: false, files: [] }]);
    await expect(openOutputFile('merged', 'model.safetensors')).rejects.toMatchObject({ code: 'NotFound' });
    expect(await rig.commit()).toBe('ok');
    expect(await rig.discard()).toBe('ok');

    expect(await listOutputs()).toEqual([
      {
        name: 'merged',
        bytes: 4,
        complete: true,
        files: [
          { path: 'model.safetensors', bytes: 4 },
          { path: 'original/params.json', bytes: 0 },
        ],
      },
    ]);
    const file = await openOutputFile('merged', 'model.safetensors');
    expect(new Uint8Array(await file.arrayBuffer())).toEqual(bytes(1, 2, 3, 4));
    expect(await rig.open('merged')).toMatchObject({ code: 'DestinationNotEmpty' });

    await deleteOutput('merged');
    await deleteOutput('merged');
    expect(await listOutputs()).toEqual([]);
  });

  test('R35: a storage that is full already is full, not forbidden', async () => {
    await using _ = await quotaOf(1000);
    expect(await startRig().open('merged')).toMatchObject({ code: 'StorageFull' });
    await expect(storageFolder('blobs-of-a-test')).rejects.toMatchObject({ code: 'StorageFull' });
  });

  test('R34: room for an output is found by trying, and the try leaves nothing', async () => {
    const rig = startRig();
    await rig.open('merged');
    expect(await rig.requireRoom(50_000_000)).toBe('ok');
    expect(await listOutputs()).toEqual([{ name: 'merged', bytes: 0, complete: false, files: [] }]);
    expect(await rig.requireRoom(2 ** 52)).toMatchObject({
      code: 'StorageFull',
      message: expect.stringContaining('4503599627370496 bytes'),
    });
    await writeOutput(startRig(), 'other');
    expect(await rig.create('model.safetensors')).toBe('ok');
  });

  test('discard leaves nothing, also with a file open', async () => {
    const rig = startRig();
    await writeOutput(rig, 'merged');
    expect(await rig.create('begun')).toBe('ok');
    expect(await rig.commit()).toMatchObject({ code: 'DestinationFailed' });
    expect(await rig.discard()).toBe('ok');
    expect(await rig.discard()).toBe('ok');
    expect(await listOutputs()).toEqual([]);
  });

  test('R35: a write whose count is wrong is a full storage, never success', async () => {
    const rig = startRig();
    await rig.open('merged');
    await rig.create('model.safetensors');
    await rig.breakWrites();
    expect(await rig.write(bytes(1, 2, 3))).toMatchObject({ code: 'StorageFull' });
    expect(await rig.discard()).toBe('ok');
  });

  describe('a long file', () => {
    /** A piece with bytes of its own, by its number. */
    const piece = (number: number, length = 3_000_000) =>
      Uint8Array.from({ length }, (_, i) => (number * 101 + i * 7) & 255);
    /** Megabytes are compared by their hash: element by element takes a minute. */
    const sha256 = async (blob: Blob) =>
      [...new Uint8Array(await crypto.subtle.digest('SHA-256', await blob.arrayBuffer()))].join();
    const written = async (name: string) => sha256(await openOutputFile(name, 'model.safetensors'));

    test('has its pieces in order, and is listed once it is committed', async () => {
      const rig = startRig();
      await rig.open('merged');
      expect(await rig.create('model.safetensors')).toBe('ok');
      // for other threads to write beside this one
      expect(await rig.place()).toBe('opfs');
      for (let i = 0; i < 7; i++) expect(await rig.write(piece(i))).toBe('ok');
      expect(await rig.flush()).toBe('ok');
      expect(await rig.write(piece(7, 5))).toBe('ok');
      expect(await rig.commit()).toMatchObject({ code: 'DestinationFailed' });
      expect(await rig.close()).toBe('ok');
      expect(await rig.commit()).toBe('ok');
      const all = new Blob([...[0, 1, 2, 3, 4, 5, 6].map((i) => piece(i)), piece(7, 5)]);
      expect(await written('merged')).toBe(await sha256(all));
    });

    test('R47: is kept as it is, and gone on with by another worker', async () => {
      const rig = startRig();
      await rig.open('merged');
      await rig.create('model.safetensors');
      for (let i = 0; i < 3; i++) await rig.write(piece(i));
      expect(await rig.keep()).toBe('ok');
      const next = startRig();
      expect(await next.open('merged', true)).toBe('ok');
      // the second piece and what follows count as not written
      expect(await next.reopen('model.safetensors', 3_000_000)).toBe('ok');
      expect(await next.write(piece(9))).toBe('ok');
      expect(await next.close()).toBe('ok');
      expect(await next.commit()).toBe('ok');
      expect(await written('merged')).toBe(await sha256(new Blob([piece(0), piece(9)])));
    });

    test('R35: a storage that fills up is told', async () => {
      const rig = startRig();
      await rig.open('merged');
      await rig.create('model.safetensors');
      {
        const { usage = 0 } = await navigator.storage.estimate();
        await using _ = await quotaOf(usage + 4_000_000);
        const outcomes = [];
        for (let i = 0; i < 3; i++) outcomes.push(await rig.write(piece(i)));
        expect([...outcomes, await rig.flush()]).toContainEqual(
          expect.objectContaining({ code: 'StorageFull' }),
        );
      }
      expect(await rig.discard()).toBe('ok');
      expect(await listOutputs()).toEqual([]);
    });

    test('is refused where it cannot be begun', async () => {
      const rig = startRig();
      await rig.open('merged');
      await rig.create('model.safetensors');
      expect(await rig.reopen('other', 2 ** 52)).toMatchObject({ code: 'StorageFull' });
      expect(await rig.discard()).toBe('ok');
      expect(await rig.discard()).toBe('ok');
      expect(await listOutputs()).toEqual([]);
    });
  });

  test('R38: the clean removes what a killed worker left, and spares an output being written', async () => {
    const killed = startRig();
    await writeOutput(killed, 'cut-off');
    await killed.create('begun');
    const alive = startRig();
    await writeOutput(alive, 'running');
    const done = startRig();
    await writeOutput(done, 'done');
    await done.commit();

    workers[0]!.terminate();
    await expect.poll(() => cleanOutputs(), { timeout: 5000 }).toEqual(['cut-off']);
    expect((await listOutputs()).map(({ name, complete }) => ({ name, complete }))).toEqual([
      { name: 'done', complete: true },
      { name: 'running', complete: false },
    ]);
    const second = startRig();
    expect(await second.open('running')).toMatchObject({ code: 'Busy' });
    await expect(deleteOutput('running')).rejects.toMatchObject({ code: 'Busy' });
    expect(await alive.commit()).toBe('ok');
    expect(await second.open('cut-off')).toBe('ok');
  });

  test('R38: an output with a torn record, or one whose file was cut short, is not complete', async () => {
    const rig = startRig();
    await writeOutput(rig, 'torn');
    await rig.commit();
    await writeOutput(rig, 'short');
    await rig.commit();
    const outputs = await (await navigator.storage.getDirectory()).getDirectoryHandle('outputs');
    await overwrite(await outputs.getDirectoryHandle('torn'), 'complete.json', '{"files":[{"pa');
    const files = await (await outputs.getDirectoryHandle('short')).getDirectoryHandle('files');
    await overwrite(files, 'model.safetensors', 'abc');
    expect((await listOutputs()).map(({ name, complete }) => [name, complete])).toEqual([
      ['short', false],
      ['torn', false],
    ]);
    expect((await cleanOutputs()).sort()).toEqual(['short', 'torn']);
  });

  test.each(['../up', 'a/b', ' x', ''])('refuses the output name %j', async (name) => {
    expect(await startRig().open(name)).toMatchObject({ code: 'UnsafePath' });
  });
});

async function overwrite(folder: FileSystemDirectoryHandle, name: string, text: string): Promise<void> {
  const stream = await (await folder.getFileHandle(name)).createWritable();
  await stream.write(text);
  await stream.close();
}
