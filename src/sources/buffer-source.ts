import { type ByteSource, checkByteRange } from './byte-source';
import { throwIfCanceled } from './cancellation';

/** A source over bytes already in memory: small files and tests. `name` is what messages call it. */
export function bufferSource(bytes: Uint8Array<ArrayBuffer>, name = 'the buffer'): ByteSource {
  return {
    byteLength: bytes.length,
    async read(begin, end, signal) {
      throwIfCanceled(signal);
      checkByteRange(begin, end, bytes.length, name);
      return bytes.slice(begin, end);
    },
  };
}
