/**
 * A source whose tree hash is found while it is read: whoever reads a byte first has the whole piece around it read and
 * hashed, so that no byte is ever used that the hash does not speak for.
 */

import type { ByteSource } from './byte-source';
import { pieceDigest } from './piece-digest';
import { giveBack, spareArray } from './spare-arrays';
import { type Leaf, TREE_PIECE_BYTES, treeHash } from './tree-hash';

export interface HashedSource extends ByteSource {
  /** Leaves that were begun so far, by the number of their piece. */
  leaves(): ReadonlyMap<number, Promise<Leaf>>;
  /**
   * The tree hash of the whole file: what nobody has read yet is read now.
   * @param onBytes called with the bytes read for it since the last call
   * @throws what the source throws
   */
  tree(signal?: AbortSignal, onBytes?: (bytes: number) => void): Promise<string>;
}

/** A piece in memory, for those who read other parts of it soon. */
interface HeldPiece {
  bytes: Promise<Uint8Array<ArrayBuffer>>;
  /** Reads that copy from it; it is let go of only without any. */
  readers: number;
}

/** Pieces read at once for the rest of a tree. */
const AT_ONCE = 4;

/** @param mostHeld pieces that stay in memory; one that went is read again where it is needed, and not hashed again */
export function hashedSource(source: ByteSource, mostHeld: number): HashedSource {
  const { byteLength } = source;
  const count = Math.ceil(byteLength / TREE_PIECE_BYTES);
  const leaves = new Map<number, Promise<Leaf>>();
  /** The one used last comes last. */
  const held = new Map<number, HeldPiece>();

  const readPiece = async (index: number, signal?: AbortSignal) => {
    const begin = index * TREE_PIECE_BYTES;
    const bytes = await source.read(begin, Math.min(begin + TREE_PIECE_BYTES, byteLength), signal);
    const leaf = pieceDigest(bytes);
    leaf.catch(() => {}); // reported where the tree is awaited
    leaves.set(index, leaf);
    return bytes;
  };
  const letGo = () => {
    for (const [index, { bytes, readers }] of held) {
      if (held.size <= mostHeld) return;
      if (readers > 0) continue;
      held.delete(index);
      void bytes.then(
        ({ buffer }) => giveBack(buffer),
        () => {}, // reported to who read it
      );
    }
  };
  /** The piece where it has to be hashed still, or is in memory. */
  const hold = (index: number, signal?: AbortSignal): HeldPiece | undefined => {
    let piece = held.get(index);
    if (!piece && leaves.has(index)) return undefined;
    piece ??= { bytes: readPiece(index, signal), readers: 0 };
    held.delete(index);
    held.set(index, piece);
    piece.readers++;
    return piece;
  };

  return {
    byteLength,
    leaves: () => leaves,
    async read(begin, end, signal) {
      if (begin === end) return source.read(begin, end, signal);
      const first = Math.floor(begin / TREE_PIECE_BYTES);
      const last = Math.floor((end - 1) / TREE_PIECE_BYTES);
      const pieces = new Map<number, HeldPiece>();
      for (let index = first; index <= last; index++) {
        const piece = hold(index, signal);
        if (piece) pieces.set(index, piece);
      }
      try {
        if (pieces.size === 0) return await source.read(begin, end, signal);
        const out = spareArray(end - begin);
        const parts: Promise<void>[] = [];
        for (let index = first; index <= last; index++) {
          const from = Math.max(begin, index * TREE_PIECE_BYTES);
          const to = Math.min(end, (index + 1) * TREE_PIECE_BYTES);
          const piece = pieces.get(index);
          const whole = piece?.bytes ?? source.read(from, to, signal);
          const offset = piece ? index * TREE_PIECE_BYTES : from;
          parts.push(
            whole.then((bytes) => {
              out.set(bytes.subarray(from - offset, to - offset), from - begin);
              if (!piece) giveBack(bytes.buffer);
            }),
          );
        }
        await Promise.all(parts);
        return out;
      } catch (thrown) {
        // a read that failed, or was canceled, is no piece
        for (const [index, { bytes }] of pieces) {
          const failed = await bytes.then(
            () => false,
            () => true,
          );
          if (failed) held.delete(index);
        }
        throw thrown;
      } finally {
        for (const piece of pieces.values()) piece.readers--;
        letGo();
      }
    },
    async tree(signal, onBytes) {
      const missing = Array.from({ length: count }, (_, index) => index).filter(
        (index) => !leaves.has(index),
      );
      const next = missing.values();
      const readAll = async () => {
        for (const index of next) {
          const { byteLength: bytes, buffer } = await readPiece(index, signal);
          onBytes?.(bytes);
          giveBack(buffer);
        }
      };
      await Promise.all(Array.from({ length: AT_ONCE }, readAll));
      return treeHash(await Promise.all(Array.from({ length: count }, (_, index) => leaves.get(index)!)));
    },
  };
}
