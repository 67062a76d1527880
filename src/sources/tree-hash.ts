/**
 * The tree hash, which says what the bytes of a file are: sha256 of the digests of its pieces, in order. Unlike a plain
 * sha256, which is one long sequence, its pieces can be hashed in any order, several at once, by the browser's own digest.
 */
import { AmalgamError } from '../errors';
import { hex, isTreeHash, OLD_TREE_PREFIX, TREE_PREFIX } from '../formats/hashes';
import type { ByteSource } from './byte-source';
import { digest } from './digest';
import { beginPiece, joined, type PieceHash, pieceDigest } from './piece-digest';
import { giveBack, spareArray } from './spare-arrays';

/** A file is cut into pieces of this size from its beginning; the last may be shorter. */
export const TREE_PIECE_BYTES = 2 * 2 ** 20;

/** The 32 bytes of a piece's digest. */
export type Leaf = Uint8Array<ArrayBuffer>;

/** The tree hash of a file by all its leaves, in order: `tree2:` and 64 hex digits. */
export async function treeHash(leaves: readonly Leaf[], prefix = TREE_PREFIX): Promise<string> {
  return prefix + hex(await digest(joined(leaves)));
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

/** Begins with no bytes, or with `whole` leaves and `filled` bytes of the piece behind them. */
export function beginLeaves(whole: readonly Promise<Leaf>[] = [], begun?: PieceHash, filled = 0): LeafHasher {
  const done = [...whole];
  let piece = begun;
  const keep = (leaf: Promise<Leaf>) => {
    leaf.catch(() => {}); // reported where the leaves are awaited
    done.push(leaf);
  };
  const update = async (bytes: Uint8Array<ArrayBuffer>) => {
    for (let at = 0; at < bytes.length; ) {
      const part = bytes.subarray(at, at + TREE_PIECE_BYTES - filled);
      at += part.length;
      if (part.length === TREE_PIECE_BYTES) {
        keep(pieceDigest(part));
        continue;
      }
      piece ??= beginPiece();
      piece.update(part);
      filled += part.length;
      if (filled < TREE_PIECE_BYTES) continue;
      keep(piece.end());
      [piece, filled] = [undefined, 0];
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
    leaves: () => Promise.all([...done, ...(piece ? [piece.copy().end()] : [])]),
    copy: () => beginLeaves(done, piece?.copy(), filled),
  };
}

/** Bytes of one read: large enough that a read's own cost vanishes. */
const READ_BYTES = 4 * TREE_PIECE_BYTES;

/**
 * The tree hash of a whole source.
 * @param isOld the one of before, whose pieces were hashed as they are
 * @throws what the source throws
 */
export async function treeOf(source: ByteSource, signal?: AbortSignal, isOld = false): Promise<string> {
  const leaves: Promise<Leaf>[] = [];
  for (let begin = 0; begin < source.byteLength; begin += READ_BYTES) {
    const bytes = await source.read(begin, Math.min(begin + READ_BYTES, source.byteLength), signal);
    for (let at = 0; at < bytes.length; at += TREE_PIECE_BYTES) {
      const piece = bytes.subarray(at, at + TREE_PIECE_BYTES);
      leaves.push(isOld ? digest(piece) : pieceDigest(piece));
    }
    giveBack(bytes.buffer);
    await leaves.at(-1);
  }
  return treeHash(await Promise.all(leaves), isOld ? OLD_TREE_PREFIX : TREE_PREFIX);
}

/** The hash of `source` of the same kind as `hash`, to be compared with it. @throws what the source throws */
export async function hashLike(hash: string, source: ByteSource, signal?: AbortSignal): Promise<string> {
  if (isTreeHash(hash)) return treeOf(source, signal, hash.startsWith(OLD_TREE_PREFIX));
  const { sha256Of } = await import('./sha256');
  return sha256Of(source, signal);
}

// A source whose tree hash is found while it is read: bytes are hashed where they were read to, in order; what a piece has
// before and behind them is read for the hash alone, so that it speaks for every byte that is used.

export interface HashedSource extends ByteSource {
  /**
   * Leaves of all pieces of which something was read, by their numbers; what they have besides is read now.
   * @throws what the source throws
   */
  leaves(): Promise<ReadonlyMap<number, Promise<Leaf>>>;
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

/** Asks for ranges to be read, and gets their bytes. */
type Reading = Generator<readonly [begin: number, end: number], void, Uint8Array<ArrayBuffer>>;

/** Pieces read at once for the rest of a tree. */
const AT_ONCE = 4;

/** The same source, hashed. What was hashed is not hashed again. */
export function hashedSource(source: ByteSource): HashedSource {
  const { byteLength } = source;
  const count = Math.ceil(byteLength / TREE_PIECE_BYTES);
  const leaves = new Map<number, Promise<Leaf>>();
  /** The piece of which the bytes up to `at` are hashed, and the next ones may come. */
  let begun: { index: number; at: number; hash: PieceHash } | undefined;
  /** Reads that wait, each for the hashes of the one before it. */
  let waiting = 0;
  let turn: Promise<unknown> = Promise.resolve();

  const rangeOf = (index: number) =>
    [index * TREE_PIECE_BYTES, Math.min((index + 1) * TREE_PIECE_BYTES, byteLength)] as const;
  const keep = (index: number, leaf: Promise<Leaf>) => {
    const known = leaves.get(index);
    const kept = known ? Promise.all([known, leaf]).then(([a, b]) => requireSame(a, b)) : leaf;
    kept.catch(() => {}); // reported where the leaves are awaited
    leaves.set(index, kept);
    return kept;
  };

  /** The rest of the piece that was begun, though its bytes may come still: then they have to be the same. */
  function* rest(): Reading {
    if (!begun || leaves.has(begun.index)) return;
    const { index, at, hash } = begun;
    const whole = hash.copy();
    whole.update(yield [at, rangeOf(index)[1]]);
    keep(index, whole.end());
  }
  function* hashing(begin: number, end: number, bytes: Uint8Array<ArrayBuffer>): Reading {
    if (begin === end) return;
    for (let index = Math.floor(begin / TREE_PIECE_BYTES); index * TREE_PIECE_BYTES < end; index++) {
      const [first, last] = rangeOf(index);
      const [from, to] = [Math.max(begin, first), Math.min(end, last)];
      const part = bytes.subarray(from - begin, to - begin);
      if (begun?.index !== index || begun.at !== from) {
        if (leaves.has(index)) continue;
        yield* rest();
        begun = undefined;
        if (leaves.has(index)) continue;
        if (from === first && to === last) {
          keep(index, pieceDigest(part));
          continue;
        }
        const hash = beginPiece();
        if (first < from) hash.update(yield [first, from]);
        begun = { index, at: from, hash };
      }
      begun.hash.update(part);
      begun.at = to;
      if (to < last) continue;
      keep(index, begun.hash.end());
      begun = undefined;
    }
  }
  const readAll = async (reading: Reading, signal?: AbortSignal) => {
    for (let step = reading.next(); !step.done; ) {
      const bytes = await source.read(...step.value, signal);
      step = reading.next(bytes);
      giveBack(bytes.buffer);
    }
  };
  const readAllNow = (reading: Reading) => {
    for (let step = reading.next(); !step.done; ) {
      const [begin, end] = step.value;
      const bytes = spareArray(end - begin);
      if (!source.readNow!(begin, end, bytes)) return false;
      step = reading.next(bytes);
      giveBack(bytes.buffer);
    }
    return true;
  };
  /** Reads, and hashes in the order of the calls. */
  const inTurn = async <T>(read: Promise<T>, reading: (came: T) => Reading, signal?: AbortSignal) => {
    const before = turn;
    waiting++;
    const mine = (async () => {
      const came = await read;
      await before;
      await readAll(reading(came), signal);
      return came;
    })();
    turn = mine.catch(() => undefined);
    try {
      return await mine;
    } finally {
      waiting--;
    }
  };

  const hashRest: HashedSource['hashRest'] = async (signal, onBytes, wants = () => true) => {
    const missing = Array.from({ length: count }, (_, index) => index).filter(
      (index) => wants(index) && !leaves.has(index),
    );
    const next = missing.values();
    const readPieces = async () => {
      for (const index of next) {
        const bytes = await source.read(...rangeOf(index), signal);
        keep(index, pieceDigest(bytes));
        onBytes?.(bytes.byteLength);
        giveBack(bytes.buffer);
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, readPieces));
  };

  return {
    byteLength,
    async leaves() {
      await inTurn(Promise.resolve(), rest);
      return leaves;
    },
    async take(piece, leaf) {
      await keep(piece, Promise.resolve(leaf));
    },
    ...(source.readNow && {
      readNow: (begin: number, end: number, into: Uint8Array<ArrayBuffer>) =>
        waiting === 0 && source.readNow!(begin, end, into) && readAllNow(hashing(begin, end, into)),
    }),
    read: (begin, end, signal, into) =>
      inTurn(source.read(begin, end, signal, into), (bytes) => hashing(begin, end, bytes), signal),
    hashRest,
    async tree(signal) {
      await hashRest(signal);
      return treeHash(await Promise.all(Array.from({ length: count }, (_, index) => leaves.get(index)!)));
    },
  };
}

function requireSame(known: Leaf, leaf: Leaf): Leaf {
  if (known.every((byte, i) => byte === leaf[i])) return known;
  throw changedWhileRead();
}

function changedWhileRead(): AmalgamError {
  return new AmalgamError(
    'RunChanged',
    'A file has changed while it was read.',
    'Let whatever writes it finish, then start again.',
  );
}
