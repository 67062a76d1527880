/** A blob that is being downloaded: its data and its journal, side by side on the disk. */
import { throwIfCanceled } from '../sources/cancellation';
import { DATA, JOURNAL } from './blob-folder';
import {
  type BlobRecord,
  bytesPresent,
  type Checksum,
  digestOffset,
  emptyRecord,
  formatRecord,
  openChecksum,
  parseRecord,
  pieceRange,
} from './blob-record';
import { type OpfsFile, openOpfsFile } from './opfs-file';

export interface FillingBlob {
  /** Pieces that are there have their checksum; changes as they are put in. */
  readonly record: BlobRecord;
  /** Bytes of the pieces that are there. */
  present(): number;
  /** Writes a piece and notes it in the journal, so that it outlives this process. @throws StorageFull, StorageFailed */
  put(index: number, bytes: Uint8Array<ArrayBuffer>): void;
  /** Bytes of a piece that is there, in `buffer`, which may be longer. */
  read(index: number, buffer: Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer>;
  /** Bytes that were put in since the last {@link FillingBlob.flush}: a power cut may take them. */
  unflushed(): number;
  /** Asks for everything put in to be on the disk before it returns. */
  flush(): void;
  close(): void;
}

/**
 * Opens the blob in `folder` at what an earlier download left there: pieces in the journal whose data still has its
 * checksum. A journal of another length, or that cannot be read, is begun anew.
 * @param pieceBytes of a new journal; an old one has its own.
 * @throws StorageFull when there is no room for the whole, Canceled, Busy, StorageFailed.
 */
export async function openFilling(
  folder: FileSystemDirectoryHandle,
  wanted: { sha256: string; byteLength: number; name: string },
  pieceBytes: number,
  signal: AbortSignal | undefined,
): Promise<FillingBlob> {
  const data = await openOpfsFile(folder, DATA, wanted.name, 'create');
  try {
    const journal = await openOpfsFile(folder, JOURNAL, `the journal of ${wanted.name}`, 'create');
    try {
      const checksum = await openChecksum();
      const { sha256, byteLength, name } = wanted;
      const found = parseRecord(journal.read(0, journal.size()), sha256);
      data.resize(byteLength);
      const isFound = found?.byteLength === byteLength;
      const record = isFound ? found : emptyRecord(sha256, byteLength, name, pieceBytes);
      if (isFound) await strikeChanged(data, record, checksum, signal);
      const bytes = formatRecord(record);
      journal.resize(bytes.length);
      journal.writeAll(bytes, 0);
      data.flush();
      journal.flush();
      return fillingBlob(data, journal, bytes.length, record, checksum);
    } catch (thrown) {
      journal.close();
      throw thrown;
    }
  } catch (thrown) {
    data.close();
    throw thrown;
  }
}

function fillingBlob(
  data: OpfsFile,
  journal: OpfsFile,
  journalBytes: number,
  record: BlobRecord,
  checksum: Checksum,
): FillingBlob {
  let present = bytesPresent(record);
  let unflushed = 0;
  return {
    record,
    present: () => present,
    put(index, bytes) {
      const digest = checksum([bytes]);
      data.writeAll(bytes, pieceRange(record, index).begin);
      journal.writeAll(new TextEncoder().encode(digest), digestOffset(record, index, journalBytes));
      record.pieces[index] = digest;
      present += bytes.length;
      unflushed += bytes.length;
    },
    read(index, buffer) {
      const { begin, end } = pieceRange(record, index);
      return data.read(begin, end, buffer.subarray(0, end - begin));
    },
    unflushed: () => unflushed,
    flush() {
      data.flush();
      journal.flush();
      unflushed = 0;
    },
    close() {
      journal.close();
      data.close();
    },
  };
}

/** Forgets the pieces whose data has not the checksum of the record. */
async function strikeChanged(
  data: OpfsFile,
  record: BlobRecord,
  checksum: Checksum,
  signal: AbortSignal | undefined,
): Promise<void> {
  const buffer = new Uint8Array(Math.min(record.pieceBytes, record.byteLength));
  let sinceTurn = 0;
  for (const [index, digest] of record.pieces.entries()) {
    throwIfCanceled(signal);
    if (digest === null) continue;
    const { begin, end } = pieceRange(record, index);
    const bytes = data.read(begin, end, buffer.subarray(0, end - begin));
    if (checksum([bytes]) !== digest) record.pieces[index] = null;
    sinceTurn += bytes.length;
    if (sinceTurn < TURN_BYTES) continue;
    sinceTurn = 0;
    await turnOfMessages();
  }
}

/** Hashing is long work on this thread: messages, such as a cancel, are handled after so many bytes. */
export const TURN_BYTES = 16 * 2 ** 20;

export function turnOfMessages(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve));
}
