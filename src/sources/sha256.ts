import type { ByteSource } from './byte-source';
import { giveBack } from './spare-arrays';

/** An incremental sha256: the browser's own digest wants the whole file in memory. */
export interface Sha256 {
  update(bytes: Uint8Array): void;
  /** Lower-case hex; ends the hash. */
  digest(): string;
}

/** Begins a sha256. Asynchronous because the hash is WebAssembly, twice as fast as JavaScript and compiled once. */
export async function beginSha256(): Promise<Sha256> {
  const { createSHA256 } = await import('hash-wasm');
  const hash = (await createSHA256()).init();
  return {
    update: (bytes) => {
      hash.update(bytes);
    },
    digest: () => hash.digest('hex'),
  };
}

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
  const hash = await beginSha256();
  let next = source.read(0, Math.min(PIECE, source.byteLength), signal);
  for (let begin = 0; begin < source.byteLength; begin += PIECE) {
    const bytes = await next;
    const after = begin + PIECE;
    // the next piece is read while this one is hashed
    if (after < source.byteLength) {
      next = source.read(after, Math.min(after + PIECE, source.byteLength), signal);
      next.catch(() => {}); // reported when it is awaited
    }
    hash.update(bytes);
    onBytes?.(bytes.byteLength);
    giveBack(bytes.buffer);
  }
  return hash.digest();
}
