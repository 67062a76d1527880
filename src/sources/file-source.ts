import { AmalgamError } from '../errors';
import { bytesOf, filesCross } from '../platform';
import { type ByteSource, checkByteRange } from './byte-source';
import { throwIfCanceled } from './cancellation';
import { spareArray } from './spare-arrays';

/**
 * A source over a `File` or `Blob`, read in place by slices. Browsers refuse to read a file that was changed, moved
 * or deleted after it was picked (`NotReadableError`, `NotFoundError`); that becomes `FileChanged`.
 */
export function fileSource(file: Blob, name: string): ByteSource {
  return {
    byteLength: file.size,
    ...(filesCross && { origin: async () => ({ kind: 'file' as const, file, name }) }),
    async read(begin, end, signal) {
      throwIfCanceled(signal);
      checkByteRange(begin, end, file.size, name);
      if (begin === end) return new Uint8Array(0);
      const bytes = await bytesOf(file.slice(begin, end)).catch((cause: unknown) => {
        throw fileChanged(name, cause);
      });
      throwIfCanceled(signal);
      if (bytes.byteLength !== end - begin) throw fileChanged(name);
      return bytes;
    },
  };
}

/** Bytes of a read in order. Chromium takes 3.2 s of processor time for a GB in slices of 2 MiB, 2.4 in such of 4. */
const AHEAD_BYTES = 4 * 2 ** 20;

/** The same source, read in larger slices while each read begins where the one before it ended. */
export function readingAhead(source: ByteSource): ByteSource {
  let slice: { begin: number; end: number; bytes: Promise<Uint8Array<ArrayBuffer>> } | undefined;
  let last = 0;
  return {
    ...source,
    async read(begin, end, signal, into) {
      throwIfCanceled(signal);
      const isThere = slice && slice.begin <= begin && end <= slice.end;
      const isNext = begin === last && end <= Math.min(begin + AHEAD_BYTES, source.byteLength);
      last = end;
      if (!isThere && !isNext) return source.read(begin, end, signal, into);
      if (!isThere) {
        const until = Math.min(begin + AHEAD_BYTES, source.byteLength);
        slice = { begin, end: until, bytes: source.read(begin, until, signal) };
      }
      const { begin: first, bytes } = slice!;
      const copy = into ?? spareArray(end - begin);
      copy.set((await bytes).subarray(begin - first, end - first));
      return copy;
    },
  };
}

function fileChanged(name: string, cause?: unknown): AmalgamError {
  return new AmalgamError(
    'FileChanged',
    `${name} can no longer be read: it was changed, moved or deleted after it was opened.`,
    'Open the folder again.',
    { cause },
  );
}
