import type { ByteSource } from '../sources/byte-source';
import { throwIfCancelled } from '../sources/cancel';
import { beginSha256 } from '../sources/sha256';
import { DATA, JOURNAL } from './blob-folder';
import {
  type BlobRecord,
  bytesPresent,
  type Checksum,
  emptyRecord,
  formatRecord,
  openChecksum,
  parseRecord,
  pieceRange,
} from './blob-record';
import { type OpfsFile, openOpfsFile } from './opfs-file';

export interface BlobWanted {
  /** Lower-case hex. */
  sha256: string;
  byteLength: number;
  /** As a person knows it, e.g. `owner/name: model.safetensors`. */
  name: string;
  source: ByteSource;
}

export interface DownloadOptions {
  signal?: AbortSignal;
  /** Called with the bytes of this blob that are on the disk: first with what was there, then after each piece. */
  onBytes?: (bytes: number) => void;
}

/** Requests under way at once: enough to hide their latency, few enough to hold their pieces in memory. */
const IN_FLIGHT = 3;

/**
 * Brings every missing piece of the blob into `folder`, beginning with what an earlier download left there. A piece
 * is written, checked and flushed before the journal says so. The whole file is read back and hashed as it fills.
 * @returns the record of all pieces, and the sha256 of the data as it is on the disk.
 * @throws StorageFull before the first request when there is no room for the whole; else whatever the source throws.
 *   What is on the disk by then stays for the next download.
 */
export async function downloadBlob(
  folder: FileSystemDirectoryHandle,
  wanted: BlobWanted,
  pieceBytes: number,
  options: DownloadOptions,
): Promise<{ record: BlobRecord; sha256: string }> {
  const data = await openOpfsFile(folder, DATA, wanted.name, 'create');
  try {
    const journal = await openOpfsFile(folder, JOURNAL, `the journal of ${wanted.name}`, 'create');
    try {
      const checksum = await openChecksum();
      const record = await resume(data, journal, wanted, pieceBytes, checksum, options.signal);
      options.onBytes?.(bytesPresent(record));
      return { record, sha256: await fillAndHash(data, journal, record, wanted.source, checksum, options) };
    } finally {
      journal.close();
    }
  } finally {
    data.close();
  }
}

/** The record to go on from: pieces in the journal whose data still has its checksum. The file has its full size. */
async function resume(
  data: OpfsFile,
  journal: OpfsFile,
  wanted: BlobWanted,
  pieceBytes: number,
  checksum: Checksum,
  signal: AbortSignal | undefined,
): Promise<BlobRecord> {
  const { sha256, byteLength, name } = wanted;
  const found = parseRecord(journal.read(0, journal.size()), sha256);
  data.resize(byteLength);
  if (found?.byteLength !== byteLength) {
    const record = emptyRecord(sha256, byteLength, name, pieceBytes);
    const bytes = formatRecord(record);
    journal.resize(bytes.length);
    save(journal, record);
    return record;
  }
  for (const [index, digest] of found.pieces.entries()) {
    throwIfCancelled(signal);
    const { begin, end } = pieceRange(found, index);
    if (digest !== null && checksum([data.read(begin, end)]) !== digest) found.pieces[index] = null;
    await turnOfMessages();
  }
  save(journal, found);
  return found;
}

function save(journal: OpfsFile, record: BlobRecord): void {
  journal.writeAll(formatRecord(record), 0);
  journal.flush();
}

async function fillAndHash(
  data: OpfsFile,
  journal: OpfsFile,
  record: BlobRecord,
  source: ByteSource,
  checksum: Checksum,
  options: DownloadOptions,
): Promise<string> {
  const missing = [...record.pieces.keys()].filter((index) => record.pieces[index] === null);
  const hash = await beginSha256();
  let pieceArrived = () => {};

  const fetchPieces = async (signal: AbortSignal) => {
    for (let index = missing.shift(); index !== undefined; index = missing.shift()) {
      const { begin, end } = pieceRange(record, index);
      const bytes = await source.read(begin, end, signal);
      const digest = checksum([bytes]);
      data.writeAll(bytes, begin);
      data.flush();
      record.pieces[index] = digest;
      save(journal, record);
      options.onBytes?.(bytesPresent(record));
      pieceArrived();
    }
  };

  const hashInOrder = async (signal: AbortSignal) => {
    for (const index of record.pieces.keys()) {
      while (record.pieces[index] === null && !signal.aborted) {
        await new Promise<void>((resolve) => {
          pieceArrived = resolve;
          signal.addEventListener('abort', () => resolve(), { once: true });
        });
      }
      throwIfCancelled(signal);
      const { begin, end } = pieceRange(record, index);
      hash.update(data.read(begin, end));
      await turnOfMessages();
    }
  };

  await allOrNothing(
    [hashInOrder, ...Array<typeof fetchPieces>(IN_FLIGHT).fill(fetchPieces)],
    options.signal,
  );
  return hash.digest();
}

/** Hashing is long work on this thread: messages, such as a cancel, get their turn after each piece. */
function turnOfMessages(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve));
}

/** Runs the tasks at once. The first failure stops the others, and is thrown when all have come to rest. */
async function allOrNothing(
  tasks: ((signal: AbortSignal) => Promise<void>)[],
  signal: AbortSignal | undefined,
): Promise<void> {
  const stop = new AbortController();
  const either = signal ? AbortSignal.any([signal, stop.signal]) : stop.signal;
  const failures: unknown[] = [];
  await Promise.all(
    tasks.map((task) =>
      task(either).catch((thrown: unknown) => {
        failures.push(thrown);
        stop.abort();
      }),
    ),
  );
  if (failures.length > 0) throw failures[0];
}
