import type { ByteSource } from './byte-source';
import { giveBack } from './spare-arrays';

/** An incremental sha256: the browser's own digest wants the whole file in memory. */
export interface Sha256 {
  update(bytes: Uint8Array): void;
  /** Lower-case hex; ends the hash. */
  digest(): string;
  /** Another hash that has taken the same bytes so far; the two go on apart. */
  copy(): Promise<Sha256>;
  /** Where the hash stands, for {@link beginSha256} to go on. */
  save(): Uint8Array<ArrayBuffer>;
}

/**
 * Begins a sha256, or goes on with a saved one. Asynchronous because the hash is WebAssembly, twice as fast as
 * JavaScript and compiled once.
 */
export async function beginSha256(state?: Uint8Array): Promise<Sha256> {
  const { createSHA256 } = await import('hash-wasm');
  const hash = (await createSHA256()).init();
  if (state) hash.load(state);
  return {
    update: (bytes) => {
      hash.update(bytes);
    },
    digest: () => hash.digest('hex'),
    copy: () => beginSha256(hash.save()),
    save: () => hash.save().slice(),
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
