import type { ByteSource } from '../sources/byte-source';
import { throwIfCanceled } from '../sources/cancellation';
import { beginSha256, type Sha256 } from '../sources/sha256';
import {
  type BlobRecord,
  bytesPresent,
  type Checksum,
  DATA,
  type DownloadSizes,
  digestOffset,
  emptyRecord,
  formatRecord,
  JOURNAL,
  openChecksum,
  parseRecord,
  pieceRange,
} from './blob-record';
import { type OpfsFile, openOpfsFile } from './opfs-file';

export interface BlobWanted {
  /** Lower-case hex. */
  sha256: string;
  byteLength: number;
  /** As a user knows it, e.g. `owner/name: model.safetensors`. */
  name: string;
  source: ByteSource;
}

export interface DownloadOptions {
  signal?: AbortSignal;
  /** Called with the bytes of this blob that are here: first with what was on the disk, then as they come. */
  onBytes?: (bytes: number) => void;
}

/** Requests under way at once: enough to hide their latency. */
const IN_FLIGHT = 3;

/**
 * Brings every missing piece of the blob into `folder`, beginning with what an earlier download left there. A request
 * covers missing pieces that lie side by side; a piece is written and noted in the journal as soon as it has come.
 * The whole file is read back and hashed as it fills.
 *
 * A kill of the process loses the pieces that were under way, a power cut those not yet flushed as well: at most
 * `sizes.request` bytes that had come, over all requests together, when the source gives a piece at a time or less.
 * @returns the record of all pieces, flushed, and the sha256 of the data as it was read back.
 * @throws StorageFull before the first request when there is no room for the whole; else whatever the source throws.
 *   What is on the disk by then stays for the next download.
 */
export async function downloadBlob(
  folder: FileSystemDirectoryHandle,
  wanted: BlobWanted,
  sizes: DownloadSizes,
  options: DownloadOptions,
): Promise<{ record: BlobRecord; sha256: string }> {
  const blob = await openFilling(folder, wanted, sizes.piece, options.signal);
  try {
    options.onBytes?.(blob.present());
    const hash = await beginSha256();
    await fillAndHash(blob, wanted.source, hash, sizes.request, options);
    blob.flush();
    return { record: blob.record, sha256: hash.digest() };
  } finally {
    blob.close();
  }
}

async function fillAndHash(
  blob: FillingBlob,
  source: ByteSource,
  hash: Sha256,
  requestBytes: number,
  options: DownloadOptions,
): Promise<void> {
  const { record } = blob;
  const { pieceBytes, byteLength } = record;
  // Under way are a piece of each request and what is left of the bytes that completed one; the rest may wait for a
  // flush. Of a journal with larger pieces fewer requests are under way.
  const requests = Math.min(IN_FLIGHT, Math.max(1, Math.floor(requestBytes / pieceBytes) - 1));
  const mostUnflushed = requestBytes - (requests + 1) * pieceBytes;
  const missing = [...record.pieces.keys()].filter((index) => record.pieces[index] === null);
  const newBuffer = () => new Uint8Array(Math.min(pieceBytes, byteLength));
  let pieceArrived = () => {};

  // of pieces that are not whole yet: on a slow link one takes minutes
  let coming = 0;
  const arrived = (bytes: number) => {
    coming += bytes;
    if (bytes > 0) options.onBytes?.(blob.present() + coming);
  };
  const put = (index: number, bytes: Uint8Array<ArrayBuffer>) => {
    blob.put(index, bytes);
    if (blob.unflushed() > mostUnflushed) blob.flush();
    options.onBytes?.(blob.present() + coming);
    pieceArrived();
  };

  const fetchPieces = async (signal: AbortSignal) => {
    const buffer = newBuffer();
    for (;;) {
      const neighbors = takeNeighbors(missing, Math.max(1, Math.floor(requestBytes / pieceBytes)));
      if (!neighbors) return;
      await fetchNeighbors(record, source, neighbors, buffer, { put, arrived }, signal);
    }
  };

  const hashInOrder = async (signal: AbortSignal) => {
    signal.addEventListener('abort', () => pieceArrived(), { once: true });
    const buffer = newBuffer();
    let sinceTurn = 0;
    for (const index of record.pieces.keys()) {
      while (record.pieces[index] === null && !signal.aborted) {
        await new Promise<void>((resolve) => {
          pieceArrived = resolve;
        });
      }
      throwIfCanceled(signal);
      const bytes = blob.read(index, buffer);
      hash.update(bytes);
      sinceTurn += bytes.length;
      if (sinceTurn < TURN_BYTES) continue;
      sinceTurn = 0;
      await turnOfMessages();
    }
  };

  await allOrNothing([hashInOrder, ...Array<typeof fetchPieces>(requests).fill(fetchPieces)], options.signal);
}

/** Pieces `[first, end)`. */
interface Neighbors {
  first: number;
  end: number;
}

/** Takes pieces that lie side by side, `most` at most, off the front of a sorted list. */
function takeNeighbors(missing: number[], most: number): Neighbors | undefined {
  const first = missing.shift();
  if (first === undefined) return undefined;
  let end = first + 1;
  for (; end < first + most && missing[0] === end; end++) missing.shift();
  return { first, end };
}

interface PieceSink {
  put(index: number, bytes: Uint8Array<ArrayBuffer>): void;
  /** So many bytes more of a piece that is not whole; less where they were taken back. */
  arrived(bytes: number): void;
}

/**
 * One request: the pieces are put together in `buffer` as their bytes come, and handed to `put` one by one. A source
 * that does not stream is asked for each piece.
 */
async function fetchNeighbors(
  record: BlobRecord,
  source: ByteSource,
  { first, end }: Neighbors,
  buffer: Uint8Array<ArrayBuffer>,
  { put, arrived }: PieceSink,
  signal: AbortSignal,
): Promise<void> {
  let index = first;
  let filled = 0;
  let told = 0;
  /** Corrects the progress reported for this request's unfinished piece. */
  const tell = (bytes: number) => {
    const more = bytes - told;
    told = bytes;
    if (more !== 0) arrived(more);
  };
  const sink = {
    take(bytes: Uint8Array<ArrayBuffer>) {
      for (let at = 0; at < bytes.length; ) {
        const piece = pieceRange(record, index);
        const length = piece.end - piece.begin;
        const part = bytes.subarray(at, at + length - filled);
        buffer.set(part, filled);
        at += part.length;
        filled += part.length;
        if (filled < length) return tell(filled);
        tell(0);
        put(index++, buffer.subarray(0, length));
        filled = 0;
      }
    },
    // pieces that were put stay: should they be wrong, the sha256 of the whole finds it
    goBack() {
      filled = 0;
      tell(0);
      return pieceRange(record, index).begin;
    },
  };
  if (source.stream) {
    await source.stream(pieceRange(record, first).begin, pieceRange(record, end - 1).end, sink, signal);
    return;
  }
  while (index < end) {
    const piece = pieceRange(record, index);
    sink.take(await source.read(piece.begin, piece.end, signal));
  }
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

// A blob that is being downloaded: its data and its journal, side by side on the disk.

type FillingBlob = ReturnType<typeof fillingBlob>;

/**
 * Opens the blob in `folder` at what an earlier download left there: pieces in the journal whose data still has its
 * checksum. A journal of another length, or that cannot be read, is begun anew.
 * @param pieceBytes of a new journal; an old one has its own.
 * @throws StorageFull when there is no room for the whole, Canceled, Busy, StorageFailed.
 */
async function openFilling(
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
) {
  let present = bytesPresent(record);
  let unflushed = 0;
  return {
    /** Pieces that are there have their checksum; changes as they are put in. */
    record,
    /** Bytes of the pieces that are there. */
    present: () => present,
    /** Writes a piece and notes it in the journal, so that it outlives this process. @throws StorageFull, StorageFailed */
    put(index: number, bytes: Uint8Array<ArrayBuffer>): void {
      const digest = checksum([bytes]);
      data.writeAll(bytes, pieceRange(record, index).begin);
      journal.writeAll(new TextEncoder().encode(digest), digestOffset(record, index, journalBytes));
      record.pieces[index] = digest;
      present += bytes.length;
      unflushed += bytes.length;
    },
    /** Bytes of a piece that is there, in `buffer`, which may be longer. */
    read(index: number, buffer: Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer> {
      const { begin, end } = pieceRange(record, index);
      return data.read(begin, end, buffer.subarray(0, end - begin));
    },
    /** Bytes that were put in since the last `flush`: a power cut may take them. */
    unflushed: () => unflushed,
    /** Asks for everything put in to be on the disk before it returns. */
    flush(): void {
      data.flush();
      journal.flush();
      unflushed = 0;
    },
    close(): void {
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
const TURN_BYTES = 16 * 2 ** 20;

function turnOfMessages(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve));
}
