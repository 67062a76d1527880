/** Stands in for `sources/piece-digest` in the command: the processor's own SHA instructions, in the thread that has the bytes. */
import { hash } from 'node:crypto';

export async function pieceDigest(piece: Uint8Array<ArrayBuffer>): Promise<Uint8Array<ArrayBuffer>> {
  return Uint8Array.from(hash('sha256', piece, 'buffer'));
}
