import * as v from 'valibot';
import { hex } from '../formats/hashes';

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

/** sha256 of bytes in memory, lower-case hex, off this thread. */
export async function digestOf(bytes: Uint8Array<ArrayBuffer>): Promise<string> {
  return hex(new Uint8Array(await crypto.subtle.digest('SHA-256', bytes)));
}
