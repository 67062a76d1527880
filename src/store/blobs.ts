import { AmalgamError } from '../errors';
import { entriesOf, folderIn } from '../platform';
import { type ByteSource, checkByteRange } from '../sources/byte-source';
import { throwIfCanceled } from '../sources/cancellation';
import { spareArray } from '../sources/spare-arrays';
import { type BlobWanted, type DownloadOptions, downloadBlob } from './blob-download';
import {
  type BlobRecord,
  blobsFolder,
  bytesPresent,
  type Checksum,
  checkSha256,
  DATA,
  DONE,
  DOWNLOAD_SIZES,
  findBlobFolder,
  formatRecord,
  ifBlobFree,
  isSha256,
  JOURNAL,
  openChecksum,
  pieceRange,
  readDone,
  readRecord,
  withBlobLock,
} from './blob-record';
import { failing, isFolder, type OpfsFile, openOpfsFile, removeStored, writeWhole } from './opfs-file';

/** A blob in the cache. */
interface StoredBlob {
  sha256: string;
  /** Bytes on the disk. */
  bytes: number;
  name: string;
  /** False for a download that was interrupted and can be resumed. */
  complete: boolean;
}

/**
 * Makes sure the blob is whole on the disk and has its sha256: downloads it, resumes an interrupted download, or does
 * nothing when it is there. Only one tab downloads a blob; others wait for it.
 * @throws IntegrityError when the content is wrong twice (nothing is stored then), StorageFull, StorageFailed,
 *   Canceled, and errors of the source (the arrived pieces stay stored then).
 */
export async function ensureBlob(
  wanted: BlobWanted,
  options: DownloadOptions = {},
  sizes = DOWNLOAD_SIZES,
): Promise<void> {
  checkSha256(wanted.sha256);
  await withBlobLock(wanted.sha256, options.signal, async () => {
    const blobs = await blobsFolder();
    for (let tried = 1; ; tried++) {
      const folder = await folderIn(blobs, wanted.sha256, true).catch(failing(wanted.name));
      if (await readDone(folder)) return options.onBytes?.(wanted.byteLength);
      const { record, sha256 } = await downloadBlob(folder, wanted, sizes, options);
      if (sha256 === wanted.sha256) {
        await writeWhole(folder, DONE, formatRecord(record), wanted.name);
        await removeStored(folder, JOURNAL, wanted.name);
        return;
      }
      await removeStored(blobs, wanted.sha256, wanted.name);
      if (tried === 2) throw altered(wanted, sha256);
    }
  });
}

/** Bytes that {@link ensureBlob} would still have to download. */
export async function missingBlobBytes(sha256: string, byteLength: number): Promise<number> {
  const folder = await findBlobFolder(sha256);
  if (!folder) return byteLength;
  if (await readDone(folder)) return 0;
  const record = await readRecord(folder, JOURNAL);
  return record?.byteLength === byteLength ? byteLength - bytesPresent(record) : byteLength;
}

/** Whether the blob is whole on the disk. */
export async function hasBlob(sha256: string): Promise<boolean> {
  const folder = await findBlobFolder(sha256);
  return folder !== undefined && (await readDone(folder)) !== undefined;
}

/** Every blob on the disk, whole or in part. */
export async function listBlobs(): Promise<StoredBlob[]> {
  const found: StoredBlob[] = [];
  for (const folder of await blobFolders()) {
    const done = await readDone(folder);
    const record = done ?? (await readRecord(folder, JOURNAL));
    if (!record) continue;
    const { sha256, name } = record;
    found.push({ sha256, name, bytes: bytesPresent(record), complete: done !== undefined });
  }
  return found;
}

/** Removes a blob, whole or partial. @throws Busy while it is downloaded or read, here or in another tab. */
export async function deleteBlob(sha256: string): Promise<void> {
  checkSha256(sha256);
  const blobs = await blobsFolder();
  const deleted = await ifBlobFree(sha256, () => removeStored(blobs, sha256, 'This cached file'));
  if (deleted) return;
  throw new AmalgamError(
    'Busy',
    'This cached file is being downloaded.',
    'Wait until the download is finished, or cancel it.',
  );
}

/**
 * Clears away what a crash may leave: swap files, records that cannot be read with the data they belonged to, and
 * things that are no blobs. Interrupted downloads that can be resumed stay, and so does what another tab works on.
 * @returns the paths removed.
 */
export async function cleanBlobs(): Promise<string[]> {
  const removed: string[] = [];
  const blobs = await blobsFolder();
  const remove = async (folder: FileSystemDirectoryHandle, name: string, path: string) => {
    await removeStored(folder, name, path);
    removed.push(path);
  };
  for (const [name, handle] of await entriesOf(blobs)) {
    if (!isFolder(handle) || !isSha256(name)) {
      await remove(blobs, name, `blobs/${name}`);
      continue;
    }
    await ifBlobFree(name, async () => {
      const done = await readDone(handle);
      if (!done && !(await readRecord(handle, JOURNAL))) return remove(blobs, name, `blobs/${name}`);
      for (const [file] of await entriesOf(handle)) {
        const leftOver = file.endsWith('.crswap') || file === (done ? JOURNAL : DONE);
        if (leftOver) await remove(handle, file, `blobs/${name}/${file}`);
      }
    });
  }
  return removed;
}

async function blobFolders(): Promise<FileSystemDirectoryHandle[]> {
  const entries = await entriesOf(await blobsFolder());
  return entries.flatMap(([name, handle]) => (isFolder(handle) && isSha256(name) ? [handle] : []));
}

function altered(wanted: BlobWanted, sha256: string): AmalgamError {
  return new AmalgamError(
    'IntegrityError',
    `${wanted.name} arrived altered twice: its sha256 is ${sha256} instead of ${wanted.sha256}.`,
    'Nothing of it was kept. Try another network; if it happens again, the copy on the hub is broken.',
  );
}

/** A source that holds something open until it is closed. Reading after that is a fault. */
export interface OpenSource extends ByteSource {
  close(): void;
}

interface OpenBlob {
  folder: FileSystemDirectoryHandle;
  file: OpfsFile;
  record: BlobRecord;
  checksum: Checksum;
  /** Pieces whose data still have their checksum. Checked once, when they are first read. */
  sound: Set<number>;
  /** What is done about others. */
  checks: Map<number, Promise<void>>;
}

/** Blobs open in this worker. Some browsers let a file be open once only, so all readers share one handle. */
const open = new Map<string, { blob: Promise<OpenBlob>; readers: number }>();

/**
 * Opens a whole blob for reading. Each piece is checked against its checksum when it is first touched, so data that
 * changed on the disk is never used.
 * @throws NotFound when the blob is not whole on the disk; IntegrityError from `read` when a piece has changed: that
 *   piece is then struck from the record, and the next `ensureBlob` downloads it again.
 */
export async function openBlob(sha256: string): Promise<OpenSource> {
  const shared = open.get(sha256) ?? { blob: openHandle(sha256), readers: 0 };
  open.set(sha256, shared);
  shared.readers++;

  let closed = false;
  const close = () => {
    if (closed) return;
    closed = true;
    if (--shared.readers > 0) return;
    open.delete(sha256);
    void shared.blob.then(
      ({ file }) => file.close(),
      () => undefined,
    );
  };
  const blob = await shared.blob.catch((thrown: unknown) => {
    close();
    throw thrown;
  });
  const { byteLength, name, pieceBytes } = blob.record;
  const piecesIn = (begin: number, end: number) => {
    const first = Math.floor(begin / pieceBytes);
    return Array.from({ length: Math.ceil(end / pieceBytes) - first }, (_, i) => first + i);
  };
  return {
    byteLength,
    ...(blob.file.isShared && { origin: async () => ({ kind: 'blob' as const, sha256 }) }),
    readNow(begin, end, into) {
      checkByteRange(begin, end, byteLength, name);
      if (!piecesIn(begin, end).every((index) => isSound(blob, index))) return false;
      blob.file.read(begin, end, into);
      return true;
    },
    async read(begin, end, signal, into = spareArray(end - begin)) {
      checkByteRange(begin, end, byteLength, name);
      for (const index of piecesIn(begin, end)) {
        throwIfCanceled(signal);
        await checkPiece(blob, index);
      }
      throwIfCanceled(signal);
      return blob.file.read(begin, end, into);
    },
    close,
  };
}

async function openHandle(sha256: string): Promise<OpenBlob> {
  const folder = await findBlobFolder(sha256);
  const record = folder && (await readDone(folder));
  if (!record) {
    throw new AmalgamError(
      'NotFound',
      `The cache has no complete blob ${sha256}.`,
      'Download the model again.',
    );
  }
  return {
    folder,
    record,
    checksum: await openChecksum(),
    file: await openOpfsFile(folder, DATA, record.name, 'read-only'),
    sound: new Set(),
    checks: new Map(),
  };
}

function checkPiece(blob: OpenBlob, index: number): Promise<void> {
  const check = blob.checks.get(index) ?? verifyPiece(blob, index);
  blob.checks.set(index, check);
  return check;
}

/** Pieces are checked in parts that stay in the processor's cache between their reading and their checksum. */
const part = new Uint8Array(512 * 2 ** 10);

function* partsOf(file: OpfsFile, begin: number, end: number): Generator<Uint8Array> {
  for (let at = begin; at < end; at += part.length) {
    const next = Math.min(end, at + part.length);
    yield file.read(at, next, part.subarray(0, next - at));
  }
}

function isSound({ file, record, checksum, sound }: OpenBlob, index: number): boolean {
  const { begin, end } = pieceRange(record, index);
  if (sound.has(index)) return true;
  if (checksum(partsOf(file, begin, end)) !== record.pieces[index]) return false;
  sound.add(index);
  return true;
}

async function verifyPiece(blob: OpenBlob, index: number): Promise<void> {
  const { folder, record } = blob;
  if (isSound(blob, index)) return;
  const { begin, end } = pieceRange(record, index);
  const pieces = record.pieces.with(index, null);
  await writeWhole(folder, JOURNAL, formatRecord({ ...record, pieces }), record.name);
  await removeStored(folder, DONE, record.name);
  throw new AmalgamError(
    'IntegrityError',
    `${record.name} has changed on this disk since it was downloaded (bytes ${begin} to ${end}).`,
    'Start again: only the part that changed is downloaded again. If it happens again, check the disk.',
  );
}
