import * as v from 'valibot';
import { fault } from '../errors';
import { contentOf, fileIn, folderIn, ifThere } from '../platform';
import { canceled } from '../sources/cancellation';
import { failing, readWhole, storageFolder } from './opfs-file';

/**
 * Record of a blob: the journal of its download (`journal.json`, some pieces missing) or the commit record of the
 * finished blob (`done.json`, none missing): a blob exists only once its `done.json` does.
 */
export interface BlobRecord {
  /** sha256 of the whole content, lower-case hex. */
  sha256: string;
  byteLength: number;
  /** The file it was first downloaded as, for people: `owner/name: model.safetensors`. */
  name: string;
  pieceBytes: number;
  /** {@link openChecksum} of each piece in order; null for a piece that is not on the disk. */
  pieces: (string | null)[];
}

/** How a download is cut up. Tests vary it. */
export interface DownloadSizes {
  /** Bytes that get a checksum together and are noted in the journal at once. */
  piece: number;
  /** Most bytes of one request, and most bytes of a blob that a kill may cost, over all requests together. */
  request: number;
}

/** Large requests because hubs limit their number, small pieces because an interruption loses those under way. */
export const DOWNLOAD_SIZES: DownloadSizes = { piece: 2 * 2 ** 20, request: 16 * 2 ** 20 };

/** Written in place of a missing digest, so that a record never changes its length while a blob fills up. */
const MISSING = '.'.repeat(32);

const schema = v.object({
  version: v.literal(2),
  sha256: v.string(),
  byteLength: v.pipe(v.number(), v.safeInteger(), v.minValue(0)),
  name: v.string(),
  pieceBytes: v.pipe(v.number(), v.safeInteger(), v.minValue(1)),
  pieces: v.array(v.string()),
});

/** The record of a blob without any piece on the disk. */
export function emptyRecord(
  sha256: string,
  byteLength: number,
  name: string,
  pieceBytes: number,
): BlobRecord {
  const pieces = new Array<string | null>(Math.ceil(byteLength / pieceBytes)).fill(null);
  return { sha256, byteLength, name, pieceBytes, pieces };
}

/**
 * The record as JSON. All records of one blob have the same length, so that a digest can be written into the journal
 * where it belongs ({@link digestOffset}): a power cut leaves it there, not there, or torn. A digest may reach the disk
 * before its piece does, which is why pieces are checked when a download goes on.
 */
export function formatRecord(record: BlobRecord): Uint8Array<ArrayBuffer> {
  const { sha256, byteLength, name, pieceBytes } = record;
  const pieces = record.pieces.map((digest) => digest ?? MISSING);
  return new TextEncoder().encode(
    JSON.stringify({ version: 2, sha256, byteLength, name, pieceBytes, pieces }),
  );
}

/** Where the 32 digits of piece `index` are in a record of `length` bytes. */
export function digestOffset(record: BlobRecord, index: number, length: number): number {
  // the record ends in pieces of 35 bytes: the digits, two quotation marks and a comma; at the last, `"]}` instead
  return length - (record.pieces.length - index) * (MISSING.length + 3);
}

/**
 * Reads a record back. A digest torn in the middle counts as missing.
 * @returns undefined unless the bytes are a sound record of the blob `sha256`.
 */
export function parseRecord(bytes: Uint8Array, sha256: string): BlobRecord | undefined {
  let value: unknown;
  try {
    value = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
  } catch {
    return undefined;
  }
  const parsed = v.safeParse(schema, value);
  if (!parsed.success || parsed.output.sha256 !== sha256) return undefined;
  const { byteLength, name, pieceBytes, pieces } = parsed.output;
  if (pieces.length !== Math.ceil(byteLength / pieceBytes)) return undefined;
  return {
    sha256,
    byteLength,
    name,
    pieceBytes,
    pieces: pieces.map((digest) => (/^[0-9a-f]{32}$/.test(digest) ? digest : null)),
  };
}

/** Byte range of piece `index`. */
export function pieceRange(record: BlobRecord, index: number): { begin: number; end: number } {
  const begin = index * record.pieceBytes;
  return { begin, end: Math.min(begin + record.pieceBytes, record.byteLength) };
}

/** Bytes of the pieces that are on the disk. */
export function bytesPresent(record: BlobRecord): number {
  let bytes = 0;
  for (const [index, digest] of record.pieces.entries()) {
    const { begin, end } = pieceRange(record, index);
    if (digest !== null) bytes += end - begin;
  }
  return bytes;
}

/** The checksum of a piece that is handed over in parts: 32 hex digits. */
export type Checksum = (parts: Iterable<Uint8Array>) => string;

/**
 * XXH128, which finds whatever a disk or a torn write does to a piece, at a tenth of sha256's cost. That the content is
 * the right one is shown once, by the sha256 of the whole; a record that lies beside its data could not prove more.
 */
export async function openChecksum(): Promise<Checksum> {
  const { createXXHash128 } = await import('hash-wasm');
  const hash = await createXXHash128();
  return (parts) => {
    hash.init();
    for (const part of parts) hash.update(part);
    return hash.digest('hex');
  };
}

/** Files of one blob, in `blobs/<sha256>/`. */
export const DATA = 'data';
export const JOURNAL = 'journal.json';
export const DONE = 'done.json';

/** The folder that holds all blobs. */
export function blobsFolder(): Promise<FileSystemDirectoryHandle> {
  return storageFolder('blobs');
}

export function isSha256(text: string): boolean {
  return /^[0-9a-f]{64}$/.test(text);
}

/** The folder of one blob; undefined when there is none. */
export async function findBlobFolder(sha256: string): Promise<FileSystemDirectoryHandle | undefined> {
  return ifThere(folderIn(await blobsFolder(), sha256)).catch(failing(`the blob ${sha256}`));
}

/** The record in `done.json` or `journal.json`; undefined when there is none or it cannot be read as one. */
export async function readRecord(
  folder: FileSystemDirectoryHandle,
  file: typeof DONE | typeof JOURNAL,
): Promise<BlobRecord | undefined> {
  const bytes = await readWhole(folder, file, `the record of the blob ${folder.name}`);
  return bytes && parseRecord(bytes, folder.name);
}

/** The record of a whole blob: committed, and its data of the right size. */
export async function readDone(folder: FileSystemDirectoryHandle): Promise<BlobRecord | undefined> {
  const record = await readRecord(folder, DONE);
  if (!record) return undefined;
  const data = await ifThere(fileIn(folder, DATA).then(contentOf)).catch(failing(record.name));
  return data?.size === record.byteLength ? record : undefined;
}

/**
 * Runs `action` while this worker alone, over all tabs, may change the blob; waits for the lock.
 * @throws Canceled when the signal fires while waiting.
 */
export async function withBlobLock<T>(
  sha256: string,
  signal: AbortSignal | undefined,
  action: () => Promise<T>,
): Promise<T> {
  let turn = false;
  try {
    return await navigator.locks.request(lockName(sha256), signal ? { signal } : {}, () => {
      turn = true;
      return action();
    });
  } catch (thrown) {
    throw !turn && signal?.aborted ? canceled() : thrown;
  }
}

/**
 * Runs `action` unless the blob is being changed.
 * @returns false when it is; then `action` was not run.
 */
export async function ifBlobFree(sha256: string, action: () => Promise<void>): Promise<boolean> {
  return navigator.locks.request(lockName(sha256), { ifAvailable: true }, async (lock) => {
    if (!lock) return false;
    await action();
    return true;
  });
}

function lockName(sha256: string): string {
  return `amalgam-blob-${sha256}`;
}

/** @throws Internal: names of blobs come from checked listings. */
export function checkSha256(sha256: string): void {
  if (isSha256(sha256)) return;
  throw fault(`${JSON.stringify(sha256)} is not a sha256.`);
}
