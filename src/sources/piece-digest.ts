import { digest } from './digest';
import { giveBack, spareArray } from './spare-arrays';

/** A piece is hashed in parts of this size: Chromium takes half the time for them that it takes for 2 MiB (docs/benchmarks.md). */
const PART_BYTES = 256 * 2 ** 10;

/** Digest of a piece [32 bytes]: sha256 of the sha256s of its parts. Takes a copy of the bytes before it returns. */
export function pieceDigest(piece: Uint8Array<ArrayBuffer>): Promise<Uint8Array<ArrayBuffer>> {
  const hash = beginPiece();
  hash.update(piece);
  return hash.end();
}

/** A piece whose bytes come in any lengths. */
export interface PieceHash {
  /** Takes a copy of the bytes that follow. */
  update(bytes: Uint8Array<ArrayBuffer>): void;
  /** Another one that has taken the same bytes. */
  copy(): PieceHash;
  /** Digest of all bytes [32 bytes]; nothing may follow. */
  end(): Promise<Uint8Array<ArrayBuffer>>;
}

/** Begins with no bytes, or with the digests of whole parts and the bytes behind them. */
export function beginPiece(
  whole: readonly Promise<Uint8Array<ArrayBuffer>>[] = [],
  begun = new Uint8Array(0),
): PieceHash {
  const parts = [...whole];
  let part = spareArray(PART_BYTES);
  part.set(begun);
  let filled = begun.length;
  const close = () => {
    if (filled > 0) parts.push(digest(part.subarray(0, filled)));
    filled = 0;
  };
  return {
    update(bytes) {
      for (let at = 0; at < bytes.length; ) {
        const next = bytes.subarray(at, at + PART_BYTES - filled);
        at += next.length;
        if (next.length === PART_BYTES) {
          parts.push(digest(next));
          continue;
        }
        part.set(next, filled);
        filled += next.length;
        if (filled === PART_BYTES) close();
      }
    },
    copy: () => beginPiece(parts, part.subarray(0, filled)),
    async end() {
      close();
      giveBack(part.buffer);
      part = new Uint8Array(0);
      return digest(joined(await Promise.all(parts)));
    },
  };
}

/** Digests of 32 bytes one behind the other. */
export function joined(digests: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const all = new Uint8Array(digests.length * 32);
  for (const [index, one] of digests.entries()) all.set(one, index * 32);
  return all;
}
