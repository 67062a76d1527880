/**
 * The tree hash, which says what the bytes of a file are: sha256 of the sha256s of its pieces, in order. Unlike a plain
 * sha256, which is one long sequence, its pieces can be hashed in any order, several at once, by the browser's own digest.
 */
import { hex, isTreeHash, TREE_PREFIX } from '../formats/hashes';
import type { ByteSource } from './byte-source';
import { pieceDigest } from './piece-digest';
import { giveBack } from './spare-arrays';

/** A file is cut into pieces of this size from its beginning; the last may be shorter. */
export const TREE_PIECE_BYTES = 2 * 2 ** 20;

/** The 32 bytes of a piece's sha256. */
export type Leaf = Uint8Array<ArrayBuffer>;

/** The tree hash of a file by all its leaves, in order: `tree:` and 64 hex digits. */
export async function treeHash(leaves: readonly Leaf[]): Promise<string> {
  const all = new Uint8Array(leaves.length * 32);
  for (const [index, leaf] of leaves.entries()) all.set(leaf, index * 32);
  return TREE_PREFIX + hex(await pieceDigest(all));
}

/** The leaves of bytes that come in order. */
export interface LeafHasher {
  /** Takes a copy of the bytes that follow. Resolves when there is room for more. */
  update(bytes: Uint8Array<ArrayBuffer>): Promise<void>;
  /** Leaves of all bytes so far, as if the file ended there; more may follow. */
  leaves(): Promise<Leaf[]>;
  /** Another one that has taken the same bytes; the two go on apart. */
  copy(): LeafHasher;
}

/** Digests under way at once; each has a copy of its piece. */
const MOST_UNDER_WAY = 8;

/** Begins with no bytes, or with `whole` leaves and the bytes of the piece behind them. */
export function beginLeaves(whole: readonly Promise<Leaf>[] = [], tail = new Uint8Array(0)): LeafHasher {
  const done = [...whole];
  let piece: Uint8Array<ArrayBuffer> | undefined;
  let filled = 0;
  const fill = (bytes: Uint8Array) => {
    piece ??= new Uint8Array(TREE_PIECE_BYTES);
    piece.set(bytes, filled);
    filled += bytes.length;
  };
  if (tail.length > 0) fill(tail);
  const begin = (bytes: Uint8Array<ArrayBuffer>) => {
    const leaf = pieceDigest(bytes);
    leaf.catch(() => {}); // reported where the leaves are awaited
    done.push(leaf);
  };
  return {
    async update(bytes) {
      for (let at = 0; at < bytes.length; ) {
        const part = bytes.subarray(at, at + TREE_PIECE_BYTES - filled);
        at += part.length;
        if (part.length === TREE_PIECE_BYTES) begin(part);
        else {
          fill(part);
          if (filled === TREE_PIECE_BYTES) {
            begin(piece!);
            filled = 0;
          }
        }
      }
      await done.at(-MOST_UNDER_WAY);
    },
    async leaves() {
      const last = filled > 0 ? [pieceDigest(piece!.subarray(0, filled))] : [];
      return Promise.all([...done, ...last]);
    },
    copy: () => beginLeaves(done, piece?.slice(0, filled)),
  };
}

/** Bytes of one read: large enough that a read's own cost vanishes. */
const READ_BYTES = 4 * TREE_PIECE_BYTES;

/**
 * The tree hash of a whole source, the next bytes being read while these are hashed.
 * @param onBytes called with the bytes read since the last call
 * @throws what the source throws
 */
export async function treeOf(
  source: ByteSource,
  signal?: AbortSignal,
  onBytes?: (bytes: number) => void,
): Promise<string> {
  const hasher = beginLeaves();
  for (let begin = 0; begin < source.byteLength; begin += READ_BYTES) {
    const bytes = await source.read(begin, Math.min(begin + READ_BYTES, source.byteLength), signal);
    await hasher.update(bytes);
    onBytes?.(bytes.byteLength);
    giveBack(bytes.buffer);
  }
  return treeHash(await hasher.leaves());
}

/** The hash of `source` of the same kind as `hash`, to be compared with it. @throws what the source throws */
export async function hashLike(hash: string, source: ByteSource, signal?: AbortSignal): Promise<string> {
  if (isTreeHash(hash)) return treeOf(source, signal);
  const { sha256Of } = await import('./sha256');
  return sha256Of(source, signal);
}
