/** Stands in for `hash-wasm` and `sources/piece-digest` in the command: the processor's own SHA instructions, by node:crypto. */
import { createHash, hash } from 'node:crypto';
import type { PieceHash } from '../../sources/piece-digest';

export async function createSHA256() {
  let hashing = createHash('sha256');
  const hasher = {
    init() {
      hashing = createHash('sha256');
      return hasher;
    },
    update(bytes: Uint8Array) {
      hashing.update(bytes);
      return hasher;
    },
    digest: (_: 'hex') => hashing.digest('hex'),
  };
  return hasher;
}

/** In the thread that has the bytes. */
export async function pieceDigest(piece: Uint8Array<ArrayBuffer>): Promise<Uint8Array<ArrayBuffer>> {
  return Uint8Array.from(hash('sha256', piece, 'buffer'));
}

export function beginPiece(_most: number, sha256 = createHash('sha256')): PieceHash {
  return {
    update: (part) => void sha256.update(part),
    copy: () => beginPiece(_most, sha256.copy()),
    end: async () => Uint8Array.from(sha256.digest()),
  };
}
