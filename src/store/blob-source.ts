import { AmalgamError } from '../errors';
import { checkByteRange } from '../sources/byte-range';
import type { ByteSource } from '../sources/byte-source';
import { throwIfCancelled } from '../sources/cancel';
import { giveBack, spareArray } from '../sources/spare-arrays';
import { DATA, DONE, findBlobFolder, JOURNAL, readDone } from './blob-folder';
import { type BlobRecord, digestOf, formatRecord, pieceRange } from './blob-record';
import { type OpfsFile, openOpfsFile, removeStored, writeWhole } from './opfs-file';

/** A source that keeps something open until it is closed. Reading after that is a fault. */
export interface OpenSource extends ByteSource {
  close(): void;
}

interface OpenBlob {
  folder: FileSystemDirectoryHandle;
  file: OpfsFile;
  record: BlobRecord;
  /** Per piece: whether its data still has its digest. Checked once, when it is first read. */
  checks: Map<number, Promise<void>>;
}

/** Blobs open in this worker. Some browsers let a file be open once only, so all readers share one handle. */
const open = new Map<string, { blob: Promise<OpenBlob>; readers: number }>();

/**
 * Opens a whole blob for reading. Each piece is checked against its digest when it is first touched, so data that
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
        throwIfCancelled(signal);
        await checkPiece(blob, index);
      }
      throwIfCancelled(signal);
      return blob.file.read(begin, end, spareArray(end - begin));
    },
    close,
  };
}

async function openHandle(sha256: string): Promise<OpenBlob> {
  const folder = await findBlobFolder(sha256);
  const record = folder && (await readDone(folder));
  if (!record) {
    throw new AmalgamError('NotFound', `The cache has no whole blob ${sha256}.`, 'Download the model again.');
  }
  return {
    folder,
    record,
    file: await openOpfsFile(folder, DATA, record.name, 'read-only'),
    checks: new Map(),
  };
}

function checkPiece(blob: OpenBlob, index: number): Promise<void> {
  const check = blob.checks.get(index) ?? verifyPiece(blob, index);
  blob.checks.set(index, check);
  return check;
}

/** Pieces being checked at once: the browser holds a copy of each. */
const CHECKS = 2;
const turns: Promise<unknown>[] = Array.from({ length: CHECKS }, () => Promise.resolve());
let next = 0;

/** Runs `check` when the one {@link CHECKS} before it has ended. */
function inTurn<T>(check: () => Promise<T>): Promise<T> {
  const turn = next++ % CHECKS;
  const result = turns[turn]!.then(check);
  turns[turn] = result.catch(() => undefined); // the caller is told
  return result;
}

async function digestOfPiece(file: OpfsFile, begin: number, end: number): Promise<string> {
  const piece = spareArray(end - begin);
  const digest = digestOf(file.read(begin, end, piece));
  giveBack(piece.buffer); // the digest has taken a copy
  return digest;
}

async function verifyPiece({ folder, file, record }: OpenBlob, index: number): Promise<void> {
  const { begin, end } = pieceRange(record, index);
  if ((await inTurn(() => digestOfPiece(file, begin, end))) === record.pieces[index]) return;
  const pieces = record.pieces.with(index, null);
  await writeWhole(folder, JOURNAL, formatRecord({ ...record, pieces }), record.name);
  await removeStored(folder, DONE, record.name);
  throw new AmalgamError(
    'IntegrityError',
    `${record.name} has changed on this disk since it was downloaded (bytes ${begin} to ${end}).`,
    'Start again: only the part that changed is downloaded anew. If it happens again, check the disk.',
  );
}
