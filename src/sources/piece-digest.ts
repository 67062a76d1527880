import { giveBack, spareArray } from './spare-arrays';

/** Sha256 of a piece [32 bytes], made beside this thread. Takes a copy of the bytes before it returns. */
export async function pieceDigest(piece: Uint8Array<ArrayBuffer>): Promise<Uint8Array<ArrayBuffer>> {
  return new Uint8Array(await crypto.subtle.digest('SHA-256', piece));
}

/** A piece whose bytes come in parts. */
export interface PieceHash {
  update(part: Uint8Array): void;
  /** Another one that has taken the same bytes. */
  copy(): PieceHash;
  /** Sha256 of all bytes [32 bytes]; nothing may follow. */
  end(): Promise<Uint8Array<ArrayBuffer>>;
}

/** Begins with no bytes. A browser hashes only what lies in one array. @param most bytes that may come */
export function beginPiece(most: number): PieceHash {
  const bytes = spareArray(most);
  let filled = 0;
  return {
    update(part) {
      bytes.set(part, filled);
      filled += part.length;
    },
    copy() {
      const other = beginPiece(most);
      other.update(bytes.subarray(0, filled));
      return other;
    },
    end() {
      const digest = pieceDigest(bytes.subarray(0, filled));
      giveBack(bytes.buffer);
      return digest;
    },
  };
}
