import { AmalgamError } from '../errors';
import { bytesOf, filesCross } from '../platform';
import { type ByteSource, checkByteRange } from './byte-source';
import { throwIfCanceled } from './cancellation';

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

function fileChanged(name: string, cause?: unknown): AmalgamError {
  return new AmalgamError(
    'FileChanged',
    `${name} can no longer be read: it was changed, moved or deleted after it was opened.`,
    'Open the folder again.',
    { cause },
  );
}
