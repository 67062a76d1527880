/**
 * The encodings in which a parquet page keeps byte arrays (github.com/apache/parquet-format, Encodings.md). Nothing here
 * makes more than the number of values it is asked for, whatever the bytes say.
 */
import { type Cursor, damaged, take, takeByte, takeUint32 } from './cursor';
import { signed, varint } from './thrift';

/** What the values of one page may be together when they share their beginnings: else a few bytes become gigabytes. */
const SHARED_BYTES = 256 << 20;
/** A block of differences is 128 values in most files. */
const BLOCK_VALUES = 1 << 16;

/** `count` byte arrays, each behind its length (4 bytes). */
export function plainValues(cursor: Cursor, count: number): Uint8Array<ArrayBuffer>[] {
  // a length takes four bytes, so a count that promises more makes no array
  if (count > (cursor.bytes.length - cursor.at) / 4)
    throw damaged(cursor, 'a page has fewer values than its header says');
  return Array.from({ length: count }, () => take(cursor, takeUint32(cursor)));
}

/**
 * `count` numbers of `width` bits, in runs of equal numbers and of packed ones. A run may promise more than is asked for:
 * packed ones come in eights.
 */
export function runLengthValues(cursor: Cursor, width: number, count: number): Uint32Array {
  if (width > 32) throw damaged(cursor, `numbers of ${width} bits`);
  const values = new Uint32Array(count);
  for (let done = 0; done < count; ) {
    const head = varint(cursor);
    if (head % 2 === 0) {
      let value = 0;
      for (let shift = 0; shift < width; shift += 8) value += takeByte(cursor) * 2 ** shift;
      const end = Math.min(count, done + head / 2);
      values.fill(value, done, end);
      done = end;
    } else {
      const groups = (head - 1) / 2;
      const run = Math.min(count - done, groups * 8);
      // some writers leave the last group's empty end away
      const left = cursor.bytes.length - cursor.at;
      const packed = take(cursor, Math.min(left, groups * width));
      if (packed.length * 8 < run * width) throw damaged(cursor, 'a page ends in the middle of its numbers');
      for (let i = 0; i < run; i++) values[done + i] = bits(packed, i * width, width);
      done += run;
    }
  }
  return values;
}

/** `count` byte arrays: their lengths as differences, then their bytes. */
export function deltaLengthValues(cursor: Cursor, count: number): Uint8Array<ArrayBuffer>[] {
  return Array.from(differences(cursor, count), (length) => take(cursor, length));
}

/** `count` byte arrays: how much each shares with the beginning of the one before it, then the rest of each. */
export function deltaValues(cursor: Cursor, count: number): Uint8Array<ArrayBuffer>[] {
  const shared = differences(cursor, count);
  const rest = deltaLengthValues(cursor, count);
  const bytes = rest.reduce((sum, suffix, i) => sum + Math.max(0, shared[i]!) + suffix.length, 0);
  if (bytes > SHARED_BYTES) throw damaged(cursor, `a page decompresses to more than ${SHARED_BYTES} bytes`);
  let before = new Uint8Array(0);
  return rest.map((suffix, i) => {
    const prefix = shared[i]!;
    if (!(prefix >= 0 && prefix <= before.length))
      throw damaged(cursor, 'a value shares a longer prefix than the value before it has');
    const value = new Uint8Array(prefix + suffix.length);
    value.set(before.subarray(0, prefix));
    value.set(suffix, prefix);
    before = value;
    return value;
  });
}

/** `count` 32-bit numbers by their differences (DELTA_BINARY_PACKED), in blocks of packed ones. */
function differences(cursor: Cursor, count: number): Int32Array {
  const blockValues = varint(cursor);
  const parts = varint(cursor);
  const total = varint(cursor);
  const partValues = blockValues / parts;
  if (
    !(blockValues <= BLOCK_VALUES && Number.isInteger(partValues / 8) && partValues > 0) ||
    total !== count
  ) {
    throw damaged(cursor, 'a page has delta blocks of an invalid size');
  }
  const values = new Int32Array(count);
  let value = signed(cursor);
  if (count > 0) values[0] = value;
  for (let done = 1; done < count; ) {
    const least = signed(cursor);
    const widths = take(cursor, parts);
    for (let part = 0; part < parts && done < count; part++) {
      const width = widths[part]!;
      if (width > 32) throw damaged(cursor, `deltas of ${width} bits`);
      const packed = take(cursor, (partValues / 8) * width);
      for (let i = 0; i < partValues && done < count; i++) {
        // modulo 2³², as they were taken
        value = (value + least + bits(packed, i * width, width)) | 0;
        values[done++] = value;
      }
    }
  }
  return values;
}

/** `width` (0–32) bits from bit `at` on, lowest first. */
function bits(bytes: Uint8Array, at: number, width: number): number {
  let value = 0;
  for (let have = 0; have < width; ) {
    const byte = bytes[(at + have) >>> 3]!;
    const from = (at + have) & 7;
    const taken = Math.min(8 - from, width - have);
    value += ((byte >> from) & ((1 << taken) - 1)) * 2 ** have;
    have += taken;
  }
  return value;
}
