/** The tree hash by its definition, with Node's own sha256. */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';

const sha256 = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest();

/** Sha256 of the digests of pieces of so many bytes. */
const overPieces = (bytes: Uint8Array, size: number, digestOf: (piece: Uint8Array) => Buffer) => {
  const digests: Buffer[] = [];
  for (let at = 0; at < bytes.length; at += size) digests.push(digestOf(bytes.subarray(at, at + size)));
  return sha256(Buffer.concat(digests));
};

export const pieceDigestOf = (piece: Uint8Array) => overPieces(piece, 2 ** 18, sha256);

export const treeHashOf = (bytes: Uint8Array) =>
  `tree2:${overPieces(bytes, 2 ** 21, pieceDigestOf).toString('hex')}`;

/** The tree hash of outputs of before. */
export const oldTreeHashOf = (bytes: Uint8Array) =>
  `tree:${overPieces(bytes, 2 ** 21, sha256).toString('hex')}`;

export function treeHashOfFile(path: string): string {
  return treeHashOf(readFileSync(path));
}
