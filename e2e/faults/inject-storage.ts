/** Faults that need no browser: the stand-in for its storage, and the fake hub. */

import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { AmalgamError } from '../../src/errors';
import { type ByteSource, bufferSource } from '../../src/sources/byte-source';
import { openHubModel } from '../../src/sources/hub';
import { findFile } from '../../src/sources/model-folder';
import { cleanBlobs, ensureBlob, listBlobs, openBlob } from '../../src/store/blobs';
import { openCached } from '../../src/store/cached-source';
import { contentOf, type FakeStorage, fakeStorage } from '../../src/store/opfs.test.fake';
import { SAMPLES } from '../disk-folder';
import { sampleModels, startFakeHub } from '../fake-hub';
import type { Fault } from '../fake-hub/faults';

export interface Tally {
  injected: number;
  /** Ended with the right bytes, after going on where that was needed. */
  survived: number;
  /** Bytes (files, in the browser) of what counted as whole that were others than they should be. */
  lost: number;
}

export function tally(parts: readonly Tally[]): Tally {
  const sum = (key: keyof Tally) => parts.reduce((all, part) => all + part[key], 0);
  return { injected: sum('injected'), survived: sum('survived'), lost: sum('lost') };
}

const SIZE = 4500;
const PIECE = 1000;
const SIZES = { piece: PIECE, request: 4 * PIECE };
const content = Uint8Array.from({ length: SIZE }, (_, i) => (i * 7 + (i >> 8)) & 0xff);
const SHA = createHash('sha256').update(content).digest('hex');

function freshStorage(): FakeStorage {
  const storage = fakeStorage();
  Object.defineProperty(globalThis, 'navigator', { value: storage.navigator, configurable: true });
  return storage;
}

function download(source: ByteSource = bufferSource(content)): Promise<unknown> {
  return ensureBlob({ sha256: SHA, byteLength: SIZE, name: 'w.bin', source }, {}, SIZES);
}

/** Differing bytes of the blob, should it count as whole; undefined when it does not. */
async function differing(): Promise<number | undefined> {
  await cleanBlobs();
  if (!(await listBlobs()).some(({ complete }) => complete)) return undefined;
  const blob = await openBlob(SHA);
  try {
    const bytes = await blob.read(0, SIZE);
    return content.reduce((count, byte, i) => count + (bytes[i] === byte ? 0 : 1), 0);
  } finally {
    blob.close();
  }
}

/** A fault has struck: what counts as whole is looked at, the download goes on, and is looked at again. */
async function goesOn(): Promise<Tally> {
  const before = (await differing()) ?? 0;
  await download();
  const after = await differing();
  return { injected: 1, survived: after === 0 ? 1 : 0, lost: before + (after ?? 0) };
}

const FATES: ((change: number) => 'lost' | 'kept' | 'torn')[] = [
  () => 'lost',
  () => 'kept',
  () => 'torn',
  (i) => (i % 2 === 0 ? 'lost' : 'kept'),
  (i) => (i === 0 ? 'kept' : 'torn'),
];

/** The power fails at every operation of a download, with every fate of what was not flushed. */
export async function powerCuts(): Promise<Tally> {
  const whole = freshStorage();
  await download();
  const operations = whole.steps;
  const tallies: Tally[] = [];
  for (const fate of FATES) {
    for (let at = 0; at < operations; at++) {
      const storage = freshStorage();
      storage.failAt = at;
      await download().catch(() => undefined);
      storage.powerCut(fate);
      tallies.push(await goesOn());
    }
  }
  return tally(tallies);
}

/** The storage is full before a download, or in the middle of it, and reports it in each way browsers have. */
export async function withFullDisk(): Promise<Tally> {
  const tallies: Tally[] = [];
  for (const whenFull of ['throws', 'short', 'silent'] as const) {
    const full = async (prepare: (storage: FakeStorage) => ByteSource) => {
      const storage = freshStorage();
      storage.whenFull = whenFull;
      const refusal = await download(prepare(storage)).then(
        () => undefined,
        (thrown: unknown) => thrown,
      );
      if (!(refusal instanceof AmalgamError) || refusal.code !== 'StorageFull')
        throw refusal ?? new Error('taken');
      storage.capacity = Infinity;
      tallies.push(await goesOn());
    };
    for (let capacity = 0; capacity < SIZE; capacity += 50) {
      await full((storage) => {
        storage.capacity = capacity;
        return bufferSource(content);
      });
    }
    for (let piece = 0; piece < SIZE / PIECE; piece++) {
      await full((storage) => ({
        byteLength: SIZE,
        async read(begin, end) {
          if (begin === piece * PIECE) storage.capacity = 0;
          return content.slice(begin, end);
        },
      }));
    }
  }
  return tally(tallies);
}

const MODEL = 'amalgam/base';
const WEIGHTS = 'model.safetensors';

/** Each way in which the hub's answer can be wrong, at many places of a file of 2.5 MB. */
export async function hubFaults(): Promise<Tally> {
  const wanted = readFileSync(`${SAMPLES}/base/${WEIGHTS}`);
  const size = wanted.length;
  const at = [0, 1, 65_535, 65_536, 1_000_000, size >> 1, size - 2, size - 1];
  const faults: Fault[] = [
    ...at.map((after) => ({ kind: 'cut', after }) as const),
    ...at.map((byte) => ({ kind: 'flip', at: byte }) as const),
    ...[1, 1000, size - 1].flatMap((by) => [{ kind: 'short', by } as const, { kind: 'long', by } as const]),
    ...[
      null,
      `bytes 1-${size}/${size}`,
      `bytes 0-${size - 2}/${size}`,
      `bytes 0-${size - 1}/${size + 1}`,
      'x',
    ].map((value) => ({ kind: 'content-range', value }) as const),
    { kind: 'ignore-range' },
    ...[429, 500, 502, 503, 504].map((status) => ({ kind: 'status', status }) as const),
  ];
  const hub = await startFakeHub({ models: sampleModels(SAMPLES) });
  const tallies: Tally[] = [];
  try {
    for (const fault of faults) {
      const storage = freshStorage();
      const model = await openHubModel({ url: hub.url, sleep: async () => {} }, MODEL);
      const file = findFile(model, WEIGHTS)!;
      hub.faults.push({ path: `${MODEL}/${WEIGHTS}`, fault });
      const source = await openCached(model, file);
      const bytes = Buffer.from(await source.read(0, size));
      source.close();
      const stored = contentOf(storage, `blobs/${file.sha256}/data`);
      const isThere = bytes.equals(wanted) && stored !== undefined && wanted.equals(stored);
      // a rule that never matched has injected nothing
      const struck = hub.faults.every(({ times }) => times === 0);
      tallies.push({
        injected: struck ? 1 : 0,
        survived: struck && isThere ? 1 : 0,
        lost: isThere ? 0 : size,
      });
      hub.faults.length = 0;
    }
  } finally {
    await hub.close();
  }
  return tally(tallies);
}
