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
  /** Takes the part that follows, and the memory of its bytes. */
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
      for (const { buffer } of [head, tail]) giveBack(buffer);
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
   * Reads and hashes what nobody has read yet.
   * @param onBytes called with the bytes read for it since the last call
   * @param wants of which pieces; absent: of all
   * @throws what the source throws
   */
  hashRest(
    signal?: AbortSignal,
    onBytes?: (bytes: number) => void,
    wants?: (piece: number) => boolean,
  ): Promise<void>;
  /** The tree hash of the whole file, after {@link hashRest}. @throws what the source throws */
  tree(signal?: AbortSignal): Promise<string>;
}

/** A piece of which a part was read, in memory for those who read the others soon. */
interface HeldPiece {
  bytes: Promise<Uint8Array<ArrayBuffer>>;
  /** Once they are there. */
  now?: Uint8Array<ArrayBuffer>;
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

  const rangeOf = (index: number) =>
    [index * TREE_PIECE_BYTES, Math.min((index + 1) * TREE_PIECE_BYTES, byteLength)] as const;
  const hash = (index: number, bytes: Uint8Array<ArrayBuffer>) => {
    const leaf = pieceDigest(bytes);
    leaf.catch(() => {}); // reported where the tree is awaited
    leaves.set(index, leaf);
  };
  const readPiece = async (index: number, signal?: AbortSignal) => {
    const bytes = await source.read(...rangeOf(index), signal);
    hash(index, bytes);
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
  const hold = (index: number, piece: HeldPiece): HeldPiece => {
    held.delete(index);
    held.set(index, piece);
    return piece;
  };
  /**
   * A range in parts: whole pieces, and parts of those that are hashed, come from the source as many at once as there are;
   * parts of a piece that has to be hashed still, or is in memory, come from the piece.
   */
  const partsOf = (begin: number, end: number) => {
    const parts: { from: number; to: number; index?: number }[] = [];
    let direct = begin;
    for (let index = Math.floor(begin / TREE_PIECE_BYTES); index * TREE_PIECE_BYTES < end; index++) {
      const [first, last] = rangeOf(index);
      const isWhole = begin <= first && last <= end;
      if (!held.has(index) && (isWhole || leaves.has(index))) continue;
      const [from, to] = [Math.max(begin, first), Math.min(end, last)];
      if (direct < from) parts.push({ from: direct, to: from });
      parts.push({ from, to, index });
      direct = to;
    }
    if (direct < end) parts.push({ from: direct, to: end });
    return parts;
  };

  /** Hashes the whole pieces in bytes [begin, end). */
  const hashWhole = (begin: number, end: number, bytes: Uint8Array<ArrayBuffer>) => {
    for (let index = Math.ceil(begin / TREE_PIECE_BYTES); index < count; index++) {
      const [from, to] = rangeOf(index);
      if (to > end) break;
      if (!leaves.has(index)) hash(index, bytes.subarray(from - begin, to - begin));
    }
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
    hashWhole(begin, end, into);
  };
  /** The same at once. */
  const readWholeNow = (begin: number, end: number, into: Uint8Array<ArrayBuffer>) => {
    if (!source.readNow!(begin, end, into)) return false;
    hashWhole(begin, end, into);
    return true;
  };
  const pieceNow = (index: number): Uint8Array<ArrayBuffer> | undefined => {
    const known = held.get(index);
    if (known) return hold(index, known).now;
    const [begin, end] = rangeOf(index);
    const now = spareArray(end - begin);
    if (!source.readNow!(begin, end, now)) return undefined;
    hash(index, now);
    hold(index, { bytes: Promise.resolve(now), now, readers: 0 });
    return now;
  };
  const readNow = (begin: number, end: number, into: Uint8Array<ArrayBuffer>) => {
    const parts = partsOf(begin, end);
    const isRead = parts.every(({ from, to, index }) => {
      const place = into.subarray(from - begin, to - begin);
      if (index === undefined) return readWholeNow(from, to, place);
      const piece = pieceNow(index);
      const [first] = rangeOf(index);
      if (piece) place.set(piece.subarray(from - first, to - first));
      return piece !== undefined;
    });
    letGo();
    return isRead;
  };

  const hashRest: HashedSource['hashRest'] = async (signal, onBytes, wants = () => true) => {
    const missing = Array.from({ length: count }, (_, index) => index).filter(
      (index) => wants(index) && !leaves.has(index),
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
  };

  return {
    byteLength,
    leaves: () => leaves,
    async take(piece, leaf) {
      const known = await leaves.get(piece);
      if (known?.some((byte, i) => byte !== leaf[i])) throw changedWhileRead();
      if (!known) leaves.set(piece, Promise.resolve(leaf));
    },
    ...(source.readNow && { readNow }),
    async read(begin, end, signal, into = spareArray(end - begin)) {
      if (begin === end) return source.read(begin, end, signal);
      const pieces = new Map<number, HeldPiece>();
      const parts = partsOf(begin, end).map(({ from, to, index }) => {
        const place = into.subarray(from - begin, to - begin);
        if (index === undefined) return readWhole(from, to, place, signal);
        const piece = hold(index, held.get(index) ?? { bytes: readPiece(index, signal), readers: 0 });
        pieces.set(index, piece);
        piece.readers++;
        const [first] = rangeOf(index);
        return piece.bytes.then((bytes) => {
          piece.now = bytes;
          place.set(bytes.subarray(from - first, to - first));
        });
      });
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
    hashRest,
    async tree(signal) {
      await hashRest(signal);
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
