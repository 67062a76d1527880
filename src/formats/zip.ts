/**
 * A .zip of files as they are (stored, not compressed: weights do not get smaller), after PKWARE's APPNOTE 6.3.10. The
 * archive is a Blob of the files themselves between their headers: they are read once for their CRC, and again when the
 * browser saves it, never as a whole in memory.
 */

import { createCRC32 } from 'hash-wasm';
import { piecesOf } from '../platform';

/** From here on sizes and offsets are written in the 64-bit form. */
const ZIP64 = 0xffff_ffff;
/** Names are UTF-8. */
const FLAGS = 0x0800;

interface Entry {
  name: Uint8Array<ArrayBuffer>;
  size: number;
  crc: number;
  /** Where its local header is. */
  offset: number;
}

/** The archive. @param onBytes called with the bytes read so far */
export async function zipOf(
  files: readonly { name: string; file: Blob }[],
  onBytes: (bytes: number) => void = () => {},
): Promise<Blob> {
  const parts: BlobPart[] = [];
  const entries: Entry[] = [];
  let offset = 0;
  let read = 0;
  const push = (part: Blob | Uint8Array<ArrayBuffer>) => {
    parts.push(part);
    offset += part instanceof Blob ? part.size : part.length;
  };
  for (const { name, file } of files) {
    const crc = await crcOf(file, (bytes) => {
      read += bytes;
      onBytes(read);
    });
    const entry = { name: new TextEncoder().encode(name), size: file.size, crc, offset };
    entries.push(entry);
    push(localHeader(entry));
    push(file);
  }
  const directory = offset;
  for (const entry of entries) push(centralHeader(entry));
  for (const part of directoryEnd(entries.length, directory, offset - directory)) push(part);
  return new Blob(parts, { type: 'application/zip' });
}

async function crcOf(file: Blob, onBytes: (bytes: number) => void): Promise<number> {
  const crc = await createCRC32();
  crc.init();
  for await (const piece of piecesOf(file.stream())) {
    crc.update(piece);
    onBytes(piece.length);
  }
  return Number.parseInt(crc.digest('hex'), 16);
}

/** Little-endian fields: `[bytes, value]`. */
function fields(...values: readonly (readonly [2 | 4 | 8, number])[]): Uint8Array<ArrayBuffer> {
  const out = new DataView(new ArrayBuffer(values.reduce((sum, [bytes]) => sum + bytes, 0)));
  let at = 0;
  for (const [bytes, value] of values) {
    if (bytes === 2) out.setUint16(at, value, true);
    else if (bytes === 4) out.setUint32(at, value, true);
    else out.setBigUint64(at, BigInt(value), true);
    at += bytes;
  }
  return new Uint8Array(out.buffer);
}

function joined(...parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const out = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    out.set(part, at);
    at += part.length;
  }
  return out;
}

/** Fields of both headers of a file: version, flags, stored, 1980-01-01, CRC, sizes, length of the name. */
function common({ name, size, crc }: Entry, large: boolean) {
  const written = large ? ZIP64 : size;
  return [
    [2, large ? 45 : 20],
    [2, FLAGS],
    [2, 0],
    [2, 0],
    [2, 0x21],
    [4, crc],
    [4, written],
    [4, written],
    [2, name.length],
  ] as const;
}

function localHeader(entry: Entry): Uint8Array<ArrayBuffer> {
  const large = entry.size >= ZIP64;
  const extra = large ? fields([2, 1], [2, 16], [8, entry.size], [8, entry.size]) : fields();
  return joined(fields([4, 0x04034b50], ...common(entry, large), [2, extra.length]), entry.name, extra);
}

function centralHeader(entry: Entry): Uint8Array<ArrayBuffer> {
  const large = entry.size >= ZIP64 || entry.offset >= ZIP64;
  const extra = large
    ? fields([2, 1], [2, 24], [8, entry.size], [8, entry.size], [8, entry.offset])
    : fields();
  return joined(
    fields(
      [4, 0x02014b50],
      [2, large ? 45 : 20],
      ...common(entry, large),
      [2, extra.length],
      [2, 0],
      [2, 0],
      [2, 0],
      [4, 0],
      [4, large ? ZIP64 : entry.offset],
    ),
    entry.name,
    extra,
  );
}

function directoryEnd(count: number, begin: number, bytes: number): Uint8Array<ArrayBuffer>[] {
  const large = begin + bytes >= ZIP64;
  const end = fields(
    [4, 0x06054b50],
    [2, 0],
    [2, 0],
    [2, count],
    [2, count],
    [4, large ? ZIP64 : bytes],
    [4, large ? ZIP64 : begin],
    [2, 0],
  );
  if (!large) return [end];
  return [
    fields(
      [4, 0x06064b50],
      [8, 44],
      [2, 45],
      [2, 45],
      [4, 0],
      [4, 0],
      [8, count],
      [8, count],
      [8, bytes],
      [8, begin],
    ),
    fields([4, 0x07064b50], [4, 0], [8, begin + bytes], [4, 1]),
    end,
  ];
}
