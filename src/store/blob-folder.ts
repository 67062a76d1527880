import { AmalgamError, isDomException } from '../errors';
import { contentOf, fileIn, folderIn } from '../platform';
import { canceled } from '../sources/cancellation';
import { type BlobRecord, parseRecord } from './blob-record';
import { readWhole, storageFolder } from './opfs-file';
import { storageError } from './storage-error';

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
  const blobs = await blobsFolder();
  try {
    return await folderIn(blobs, sha256);
  } catch (thrown) {
    if (isDomException(thrown, 'NotFoundError')) return undefined;
    throw storageError(thrown, `the blob ${sha256}`);
  }
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
  try {
    const { size } = await contentOf(await fileIn(folder, DATA));
    return size === record.byteLength ? record : undefined;
  } catch (thrown) {
    if (isDomException(thrown, 'NotFoundError')) return undefined;
    throw storageError(thrown, record.name);
  }
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
  throw new AmalgamError(
    'Internal',
    `${JSON.stringify(sha256)} is not a sha256.`,
    'This is a fault in Amalgam. Copy the details into a bug report.',
  );
}
