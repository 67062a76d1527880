import { sha256 } from '@noble/hashes/sha2.js';
import { bytesToHex } from '@noble/hashes/utils.js';
import type { ByteSource } from './byte-source';

/** Read size while hashing: large enough that a read's own cost vanishes. */
const PIECE = 8 * 1024 * 1024;

/**
 * sha256 of a whole source in lower-case hex, streamed.
 *
 * @param onBytes called with the bytes hashed since the last call
 * @throws what the source throws
 */
export async function sha256Of(
  source: ByteSource,
  signal?: AbortSignal,
  onBytes?: (bytes: number) => void,
): Promise<string> {
  const hash = sha256.create();
  for (let begin = 0; begin < source.byteLength; begin += PIECE) {
    const bytes = await source.read(begin, Math.min(begin + PIECE, source.byteLength), signal);
    hash.update(bytes);
    onBytes?.(bytes.byteLength);
  }
  return bytesToHex(hash.digest());
}
