/** A place in bytes that must not be believed: everything taken from them is checked against their end. */
import { AmalgamError } from '../errors';

export interface Cursor {
  readonly bytes: Uint8Array<ArrayBuffer>;
  at: number;
  /** The file in messages. */
  readonly name: string;
}

/** The next byte. @throws AmalgamError `DatasetInvalid` at the end */
export function takeByte(cursor: Cursor): number {
  const byte = cursor.bytes[cursor.at];
  if (byte === undefined) throw damaged(cursor, 'it ends in the middle');
  cursor.at++;
  return byte;
}

/** The next `count` bytes, not copied. @throws AmalgamError `DatasetInvalid` when there are fewer */
export function take(cursor: Cursor, count: number): Uint8Array<ArrayBuffer> {
  const { bytes, at } = cursor;
  if (!(count >= 0 && count <= bytes.length - at)) throw damaged(cursor, 'it ends in the middle');
  cursor.at += count;
  return bytes.subarray(at, at + count);
}

/** A little-endian unsigned 32-bit number. */
export function takeUint32(cursor: Cursor): number {
  const [a, b, c, d] = take(cursor, 4) as unknown as [number, number, number, number];
  return (a | (b << 8) | (c << 16) | (d << 24)) >>> 0;
}

/** The error for bytes that are not what they should be. */
export function damaged({ name }: { name: string }, why: string, cause?: unknown): AmalgamError {
  return new AmalgamError(
    'DatasetInvalid',
    `${name} cannot be read as parquet: ${why}.`,
    'The file is damaged or of another kind. Choose another one.',
    { cause },
  );
}

/** The error for a file that would take too much to read. */
export function tooLarge(name: string, what: string): AmalgamError {
  return new AmalgamError('LimitExceeded', `${name} has ${what}.`, 'Choose a file with smaller pages.');
}
