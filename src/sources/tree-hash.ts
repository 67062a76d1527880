/**
 * The tree hash, which says what the bytes of a file are: sha256 of the sha256s of its pieces, in order. Unlike a plain
 * sha256, which is one long sequence, its pieces can be hashed in any order, several at once, by the browser's own digest.
 */
import { AmalgamError } from '../errors';
import { hex, isTreeHash, TREE_PREFIX } from '../formats/hashes';
import type { ByteSource } from './byte-source';
import { pieceDigest } from './piece-digest';
import { giveBack, spareArray } from './spare-arrays';

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

/** Bytes that were hashed elsewhere: whole pieces of a file, and what lies before the first and behind the last. */
export interface HashedPart {
  head: Uint8Array<ArrayBuffer>;
  leaves: readonly Leaf[];
  tail: Uint8Array<ArrayBuffer>;
}

/** The leaves of bytes that come in order. */
export interface LeafHasher {
  /** Takes a copy of the bytes that follow. Resolves when there is room for more. */
  update(bytes: Uint8Array<ArrayBuffer>): Promise<void>;
  /** Takes the part that follows. */
  take(part: HashedPart): Promise<void>;
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
  const update = async (bytes: Uint8Array<ArrayBuffer>) => {
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
  };
  return {
    update,
    async take({ head, leaves, tail }) {
      await update(head);
      for (const leaf of leaves) done.push(Promise.resolve(leaf));
      await update(tail);
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

// A source whose tree hash is found while it is read: whoever reads a byte first has the whole piece around it read and
// hashed, so that no byte is ever used that the hash does not speak for.

export interface HashedSource extends ByteSource {
  /** Leaves that were begun so far, by the number of their piece. */
  leaves(): ReadonlyMap<number, Promise<Leaf>>;
  /** Takes a leaf that another reader has found. @throws AmalgamError `RunChanged` where it is another one than here */
  take(piece: number, leaf: Leaf): Promise<void>;
  /**
   * The tree hash of the whole file: what nobody has read yet is read now.
   * @param onBytes called with the bytes read for it since the last call
   * @throws what the source throws
   */
  tree(signal?: AbortSignal, onBytes?: (bytes: number) => void): Promise<string>;
}

/** A piece of which a part was read, in memory for those who read the others soon. */
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

  /** Reads [begin, end) into place, and hashes the whole pieces in it. */
  const readWhole = async (
    begin: number,
    end: number,
    into: Uint8Array<ArrayBuffer>,
    signal?: AbortSignal,
  ) => {
    const bytes = await source.read(begin, end, signal, into);
    if (bytes !== into) {
      into.set(bytes);
      giveBack(bytes.buffer);
    }
    for (let index = Math.ceil(begin / TREE_PIECE_BYTES); index < count; index++) {
      const [from, to] = [index * TREE_PIECE_BYTES, Math.min((index + 1) * TREE_PIECE_BYTES, byteLength)];
      if (to > end) break;
      if (leaves.has(index)) continue;
      const leaf = pieceDigest(into.subarray(from - begin, to - begin));
      leaf.catch(() => {}); // reported where the tree is awaited
      leaves.set(index, leaf);
    }
  };

  return {
    byteLength,
    leaves: () => leaves,
    async take(piece, leaf) {
      const known = await leaves.get(piece);
      if (known?.some((byte, i) => byte !== leaf[i])) throw changedWhileRead();
      if (!known) leaves.set(piece, Promise.resolve(leaf));
    },
    async read(begin, end, signal, into = spareArray(end - begin)) {
      if (begin === end) return source.read(begin, end, signal);
      const pieces = new Map<number, HeldPiece>();
      const parts: Promise<void>[] = [];
      /** Whole pieces, and parts of those that are hashed, are read where they go, as many at once as there are. */
      let direct = begin;
      const readUpTo = (to: number) => {
        if (to > direct) parts.push(readWhole(direct, to, into.subarray(direct - begin, to - begin), signal));
      };
      for (let index = Math.floor(begin / TREE_PIECE_BYTES); index * TREE_PIECE_BYTES < end; index++) {
        const [first, last] = [
          index * TREE_PIECE_BYTES,
          Math.min((index + 1) * TREE_PIECE_BYTES, byteLength),
        ];
        if (begin <= first && last <= end && !held.has(index)) continue;
        const piece = hold(index, signal);
        if (!piece) continue;
        pieces.set(index, piece);
        const [from, to] = [Math.max(begin, first), Math.min(end, last)];
        readUpTo(from);
        direct = to;
        parts.push(
          piece.bytes.then((bytes) => into.set(bytes.subarray(from - first, to - first), from - begin)),
        );
      }
      readUpTo(end);
      try {
        await Promise.all(parts);
        return into;
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

function changedWhileRead(): AmalgamError {
  return new AmalgamError(
    'RunChanged',
    'A file has changed while it was read.',
    'Let whatever writes it finish, then start again.',
  );
}
