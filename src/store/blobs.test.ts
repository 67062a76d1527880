import { createHash } from 'node:crypto';
import { beforeEach, describe, expect, test, vi } from 'vitest';
import { type ByteSource, bufferSource } from '../sources/byte-source';
import { cleanBlobs, deleteBlob, ensureBlob, hasBlob, listBlobs, missingBlobBytes, openBlob } from './blobs';
import { contentOf, type FakeStorage, fakeStorage, plant, rot } from './opfs.test.fake';

const SIZE = 4500;
const PIECE = 1000;
const SIZES = { piece: PIECE, request: 4 * PIECE };
const content = Uint8Array.from({ length: SIZE }, (_, i) => (i * 7 + (i >> 8)) & 0xff);
const SHA = sha256Of(content);
const FOLDER = `blobs/${SHA}`;

let storage: FakeStorage;
beforeEach(() => {
  storage = fakeStorage();
  vi.stubGlobal('navigator', storage.navigator);
});

function sha256Of(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}

/** A source that writes down which pieces it was asked for. */
function counting(source: ByteSource, asked: number[] = []): ByteSource & { asked: number[] } {
  return {
    asked,
    byteLength: source.byteLength,
    read(begin, end, signal) {
      asked.push(begin / PIECE);
      return source.read(begin, end, signal);
    },
  };
}

/** A source whose reads of a piece go wrong in some way. */
function faulty(change: (piece: number, bytes: Uint8Array<ArrayBuffer>) => void): ByteSource {
  const source = bufferSource(content);
  return {
    byteLength: SIZE,
    async read(begin, end, signal) {
      const bytes = await source.read(begin, end, signal);
      change(begin / PIECE, bytes);
      return bytes;
    },
  };
}

const wanted = (source: ByteSource = bufferSource(content)) => ({
  sha256: SHA,
  byteLength: SIZE,
  name: 'a/b: w.bin',
  source,
});
const ensure = (source?: ByteSource, options = {}) => ensureBlob(wanted(source), options, SIZES);

async function readBack(): Promise<Uint8Array> {
  const blob = await openBlob(SHA);
  try {
    return await blob.read(0, SIZE);
  } finally {
    blob.close();
  }
}

describe('downloading', () => {
  test('each piece is asked for once, and the blob is there afterwards', async () => {
    const source = counting(bufferSource(content));
    const bytes: number[] = [];
    expect(await missingBlobBytes(SHA, SIZE)).toBe(SIZE);
    await ensure(source, { onBytes: (n: number) => bytes.push(n) });
    expect(source.asked.sort()).toEqual([0, 1, 2, 3, 4]);
    expect(bytes[0]).toBe(0);
    expect(bytes.at(-1)).toBe(SIZE);
    expect(await missingBlobBytes(SHA, SIZE)).toBe(0);
    expect(await listBlobs()).toEqual([{ sha256: SHA, bytes: SIZE, name: 'a/b: w.bin', complete: true }]);
    expect(await readBack()).toEqual(content);
    expect(contentOf(storage, `${FOLDER}/journal.json`)).toBeUndefined();
  });

  test('a second time asks for nothing and says that all is there', async () => {
    await ensure();
    const source = counting(bufferSource(content));
    const bytes: number[] = [];
    await ensure(source, { onBytes: (n: number) => bytes.push(n) });
    expect(source.asked).toEqual([]);
    expect(bytes).toEqual([SIZE]);
  });

  test('two at once are one download', async () => {
    const source = counting(bufferSource(content));
    await Promise.all([ensure(source), ensure(source)]);
    expect(source.asked).toHaveLength(5);
  });

  test('an empty blob', async () => {
    const empty = new Uint8Array(0);
    const sha256 = sha256Of(empty);
    await ensureBlob({ sha256, byteLength: 0, name: 'empty', source: bufferSource(empty) });
    expect(await hasBlob(sha256)).toBe(true);
    const blob = await openBlob(sha256);
    expect(await blob.read(0, 0)).toHaveLength(0);
    blob.close();
  });

  test('R25: a failing source ends it with its own error, and what arrived is kept', async () => {
    const broken = faulty((piece) => {
      if (piece === 3) throw new Error('the line is dead');
    });
    await expect(ensure(broken)).rejects.toThrow('the line is dead');
    expect(await hasBlob(SHA)).toBe(false);
    const missing = await missingBlobBytes(SHA, SIZE);
    expect(missing).toBeLessThan(SIZE);
    const [listed] = await listBlobs();
    expect(listed).toMatchObject({ complete: false, bytes: SIZE - missing });

    const source = counting(bufferSource(content));
    const bytes: number[] = [];
    await ensure(source, { onBytes: (n: number) => bytes.push(n) });
    expect(bytes[0]).toBe(SIZE - missing);
    expect(source.asked).toHaveLength(Math.ceil(missing / PIECE));
    expect(await readBack()).toEqual(content);
  });

  test('canceling ends it, and it goes on later', async () => {
    const controller = new AbortController();
    const source = faulty((piece) => {
      if (piece === 2) controller.abort();
    });
    await expect(ensure(source, { signal: controller.signal })).rejects.toMatchObject({ code: 'Canceled' });
    expect(await hasBlob(SHA)).toBe(false);
    await ensure();
    expect(await readBack()).toEqual(content);
  });

  test('canceling while another download of the blob has its turn', async () => {
    const controller = new AbortController();
    const first = ensure();
    const second = ensure(bufferSource(content), { signal: controller.signal });
    controller.abort();
    await expect(second).rejects.toMatchObject({ code: 'Canceled' });
    await first;
  });
});

describe('R28: wrong content', () => {
  test('one flipped bit: everything is fetched once more', async () => {
    let flips = 1;
    const source = counting(
      faulty((piece, bytes) => {
        if (piece === 3 && flips-- > 0) bytes[17] = (bytes[17] ?? 0) ^ 1;
      }),
    );
    await ensure(source);
    expect(source.asked).toHaveLength(10);
    expect(await readBack()).toEqual(content);
  });

  test('wrong twice: IntegrityError, and nothing is left', async () => {
    const source = counting(faulty((_, bytes) => bytes.fill(0)));
    await expect(ensure(source)).rejects.toMatchObject({ code: 'IntegrityError' });
    expect(source.asked).toHaveLength(10);
    expect(await listBlobs()).toEqual([]);
    expect(storage.root.entries.get('blobs')).toMatchObject({ entries: new Map() });
  });

  test('a journal of another length is not trusted', async () => {
    const shorter = faulty((piece) => {
      if (piece === 3) throw new Error('dead');
    });
    await expect(ensureBlob({ ...wanted(shorter), byteLength: 4000 }, {}, SIZES)).rejects.toThrow('dead');
    expect((await listBlobs())[0]?.bytes).toBeGreaterThan(0);
    expect(await missingBlobBytes(SHA, SIZE)).toBe(SIZE);
    const source = counting(bufferSource(content));
    await ensure(source);
    expect(source.asked).toHaveLength(5);
    expect(await readBack()).toEqual(content);
  });
});

describe('data that changes on the disk', () => {
  test('is found before it is used; only its piece is fetched again', async () => {
    await ensure();
    rot(storage, `${FOLDER}/data`, 2500);
    const blob = await openBlob(SHA);
    const [sound, changed] = [new Uint8Array(2000), new Uint8Array(2)];
    expect(blob.readNow!(0, 2000, sound)).toBe(true);
    expect(sound).toEqual(content.slice(0, 2000));
    expect(blob.readNow!(1999, 2001, changed)).toBe(false);
    expect(changed).toEqual(new Uint8Array(2));
    expect(await blob.read(0, 2000)).toEqual(sound);
    await expect(blob.read(1999, 2001)).rejects.toMatchObject({
      code: 'IntegrityError',
      message: expect.stringContaining('a/b: w.bin'),
    });
    blob.close();
    expect(await hasBlob(SHA)).toBe(false);
    const source = counting(bufferSource(content));
    await ensure(source);
    expect(source.asked).toEqual([2]);
    expect(await readBack()).toEqual(content);
  });

  test('in a partial download is found when it is resumed', async () => {
    const dead = faulty((piece) => {
      if (piece === 4) throw new Error('dead');
    });
    await expect(ensure(dead)).rejects.toThrow('dead');
    rot(storage, `${FOLDER}/data`, 10);
    const source = counting(bufferSource(content));
    await ensure(source);
    expect(source.asked).toContain(0);
    expect(await readBack()).toEqual(content);
  });
});

describe('R35: a full storage', () => {
  test.each(['throws', 'short', 'silent'] as const)(
    'that %s is found before the first request',
    async (way) => {
      storage.capacity = SIZE - 1;
      storage.whenFull = way;
      const source = counting(bufferSource(content));
      await expect(ensure(source)).rejects.toMatchObject({
        code: 'StorageFull',
        message: expect.stringContaining('a/b: w.bin'),
      });
      expect(source.asked).toEqual([]);
      storage.capacity = Infinity;
      await ensure();
      expect(await readBack()).toEqual(content);
    },
  );

  test.each(['throws', 'short', 'silent'] as const)(
    'that %s in the middle keeps what was whole',
    async (way) => {
      storage.whenFull = way;
      const source = faulty((piece) => {
        if (piece === 3) storage.capacity = 0;
      });
      await expect(ensure(source)).rejects.toMatchObject({ code: 'StorageFull' });
      expect(await hasBlob(SHA)).toBe(false);
      storage.capacity = Infinity;
      const again = counting(bufferSource(content));
      await ensure(again);
      expect(again.asked).toContain(3);
      expect(await readBack()).toEqual(content);
    },
  );
});

describe('R38: power cuts', () => {
  const fates = {
    'all is lost': () => 'lost',
    'all is kept': () => 'kept',
    'all is torn': () => 'torn',
    'every other is lost': (i) => (i % 2 === 0 ? 'lost' : 'kept'),
    'the first is kept, the last torn': (i) => (i === 0 ? 'kept' : 'torn'),
  } as const satisfies Record<string, (change: number) => 'lost' | 'kept' | 'torn'>;

  test.each(Object.keys(fates) as (keyof typeof fates)[])(
    'at every operation, when of the unflushed changes %s',
    async (fate) => {
      await ensure();
      const operations = storage.steps;
      expect(operations).toBeGreaterThan(40);
      for (let at = 0; at < operations; at++) {
        storage = fakeStorage();
        vi.stubGlobal('navigator', storage.navigator);
        storage.failAt = at;
        const source = counting(bufferSource(content));
        await expect(ensure(source)).rejects.toBeDefined();
        storage.powerCut(fates[fate]);

        await cleanBlobs();
        for (const blob of await listBlobs()) if (blob.complete) expect(await readBack()).toEqual(content);
        await ensure(source);
        expect(await readBack()).toEqual(content);
        expect(await listBlobs()).toMatchObject([{ complete: true, bytes: SIZE }]);
        // no more than one request's length is fetched twice, whatever became of what was not flushed
        expect(source.asked.length).toBeLessThanOrEqual(5 + 4);
      }
    },
  );
});

describe('deleting', () => {
  test('removes a whole and a partial blob, and asks for all of it next time', async () => {
    await ensure();
    await deleteBlob(SHA);
    expect(await listBlobs()).toEqual([]);
    expect(await missingBlobBytes(SHA, SIZE)).toBe(SIZE);
    await deleteBlob(SHA);
  });

  test('is refused while the blob is read or downloaded', async () => {
    await ensure();
    const blob = await openBlob(SHA);
    await expect(deleteBlob(SHA)).rejects.toMatchObject({ code: 'Busy' });
    expect(await blob.read(0, 10)).toEqual(content.slice(0, 10));
    blob.close();
    await vi.waitFor(() => deleteBlob(SHA), 60_000);

    const downloading = ensure();
    await expect(deleteBlob(SHA)).rejects.toMatchObject({ code: 'Busy' });
    await downloading;
  });
});

describe('opening', () => {
  test('what is not there, or not whole, is NotFound', async () => {
    await expect(openBlob(SHA)).rejects.toMatchObject({ code: 'NotFound' });
    await expect(
      ensure(
        faulty((piece) => {
          if (piece === 4) throw new Error('dead');
        }),
      ),
    ).rejects.toThrow('dead');
    await expect(openBlob(SHA)).rejects.toMatchObject({ code: 'NotFound' });
  });

  test('several readers share it until the last has closed', async () => {
    await ensure();
    const [a, b] = await Promise.all([openBlob(SHA), openBlob(SHA)]);
    a.close();
    a.close();
    expect(await b.read(4000, 4500)).toEqual(content.slice(4000));
    expect(await b.read(4500, 4500)).toHaveLength(0);
    await expect(b.read(0, 10, AbortSignal.abort())).rejects.toMatchObject({ code: 'Canceled' });
    b.close();
    await vi.waitFor(() => deleteBlob(SHA), 60_000);
  });
});

describe('R38: cleaning', () => {
  test('removes swap files, unreadable records and strangers; keeps blobs and what can be resumed', async () => {
    await ensure();
    const partial = 'cd'.repeat(32);
    await ensureBlob(
      {
        ...wanted(
          faulty((p) => {
            if (p === 2) throw new Error('dead');
          }),
        ),
        sha256: partial,
      },
      {},
      SIZES,
    ).catch(() => undefined);
    plant(storage, `${FOLDER}/data.crswap`, 'x');
    plant(storage, `${FOLDER}/journal.json`, 'left over');
    plant(storage, `blobs/${'ef'.repeat(32)}/journal.json`, '{"version":1,"sha2');
    plant(storage, `blobs/${'ef'.repeat(32)}/data`, 'x');
    plant(storage, 'blobs/stranger.txt', 'x');

    expect((await cleanBlobs()).sort()).toEqual(
      [
        `${FOLDER}/data.crswap`,
        `${FOLDER}/journal.json`,
        `blobs/${'ef'.repeat(32)}`,
        'blobs/stranger.txt',
      ].sort(),
    );
    expect((await listBlobs()).map((b) => [b.sha256, b.complete]).sort()).toEqual(
      [
        [SHA, true],
        [partial, false],
      ].sort(),
    );
    expect(await readBack()).toEqual(content);
    expect(await cleanBlobs()).toEqual([]);
  });

  test('a commit record whose data is short is no blob', async () => {
    await ensure();
    plant(storage, `${FOLDER}/data`, 'short');
    expect(await hasBlob(SHA)).toBe(false);
    expect(await cleanBlobs()).toEqual([FOLDER]);
  });

  test('leaves alone what is being downloaded', async () => {
    const downloading = ensure();
    await cleanBlobs();
    await downloading;
    expect(await readBack()).toEqual(content);
  });
});

test('R36: a browser without storage is StorageUnavailable', async () => {
  vi.stubGlobal('navigator', { ...storage.navigator, storage: {} });
  await expect(ensure()).rejects.toMatchObject({ code: 'StorageUnavailable' });
});
