import { AmalgamError } from '../errors';
import { checkByteRange } from '../sources/byte-range';
import type { ByteSource } from '../sources/byte-source';
import { throwIfCanceled } from '../sources/cancellation';
import { spareArray } from '../sources/spare-arrays';
import { DATA, DONE, findBlobFolder, JOURNAL, readDone } from './blob-folder';
import { type BlobRecord, type Checksum, formatRecord, openChecksum, pieceRange } from './blob-record';
import { type OpfsFile, openOpfsFile, removeStored, writeWhole } from './opfs-file';

/** A source that holds something open until it is closed. Reading after that is a fault. */
export interface OpenSource extends ByteSource {
  close(): void;
}

interface OpenBlob {
  folder: FileSystemDirectoryHandle;
  file: OpfsFile;
  record: BlobRecord;
  checksum: Checksum;
  /** Per piece: whether its data still has its checksum. Checked once, when it is first read. */
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
  const { byteLength, name } = blob.record;
  return {
    byteLength,
    async read(begin, end, signal) {
      checkByteRange(begin, end, byteLength, name);
      const first = Math.floor(begin / blob.record.pieceBytes);
      for (let index = first; index * blob.record.pieceBytes < end; index++) {
        throwIfCanceled(signal);
        await checkPiece(blob, index);
      }
      throwIfCanceled(signal);
      return blob.file.read(begin, end, spareArray(end - begin));
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

async function verifyPiece(blob: OpenBlob, index: number): Promise<void> {
  const { folder, file, record, checksum } = blob;
  const { begin, end } = pieceRange(record, index);
  if (checksum(partsOf(file, begin, end)) === record.pieces[index]) return;
  const pieces = record.pieces.with(index, null);
  await writeWhole(folder, JOURNAL, formatRecord({ ...record, pieces }), record.name);
  await removeStored(folder, DONE, record.name);
  throw new AmalgamError(
    'IntegrityError',
    `${record.name} has changed on this disk since it was downloaded (bytes ${begin} to ${end}).`,
    'Start again: only the part that changed is downloaded again. If it happens again, check the disk.',
  );
}
