import { AmalgamError } from '../errors';

/**
 * Checks that `[begin, end)` lies in a file of `byteLength` bytes. Readers validate offsets before they read, so a
 * range outside is a fault of ours, not of the file.
 * @throws Internal naming the file and the range.
 */
export function checkByteRange(begin: number, end: number, byteLength: number, name: string): void {
  const inside = Number.isSafeInteger(begin) && Number.isSafeInteger(end) && 0 <= begin && begin <= end;
  if (inside && end <= byteLength) return;
  throw new AmalgamError(
    'Internal',
    `Bytes ${begin} to ${end} of ${name} were asked for, which has ${byteLength} bytes.`,
    'This is a fault in Amalgam. Copy the details into a bug report.',
  );
}
