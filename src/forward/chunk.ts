/** Sequences cut into chunks of rows: what goes through a block at once. */

import { GROUP_ROWS } from '../backend/kernels/attention-groups';
import { AmalgamError } from '../errors';
import type { Architecture } from '../models/architecture';

/** Token ids at consecutive positions. */
export interface Sequence {
  ids: ArrayLike<number>;
  /** Position of the first id; 0 unless a cache holds what comes before. */
  start?: number;
  /** Slot of the cache. */
  slot?: number;
  /**
   * What is wanted in the end, from this index on (default: nothing): for losses those of ids[from …], from ≥ 1; for
   * logits those of the rows from ….
   */
  from?: number;
}

/** A stretch of one sequence inside a chunk. */
export interface Piece {
  sequence: number;
  /** Rows of the chunk, and ids of the sequence: both from `begin`, `count` of them. */
  row: number;
  begin: number;
  count: number;
}

export interface Chunk {
  pieces: Piece[];
  rows: number;
  ids: Uint32Array<ArrayBuffer>;
  positions: Uint32Array<ArrayBuffer>;
  /** Per row: the row of the keys and values it is stored in, and its position. */
  places: Uint32Array<ArrayBuffer>;
  /** Rows in fours that share a sequence: shaders/lib/attention.wgsl. */
  groups: Uint32Array<ArrayBuffer>;
  /** Pieces for what runs along a sequence: shaders/causal-conv.wgsl. */
  runs: Uint32Array<ArrayBuffer>;
  /** True when its sequences are longer than the model's original positions (longrope). */
  long: boolean;
  /** Rows of keys and values that the chunk uses when there is no cache. */
  keyRows: number;
}

/**
 * Cuts sequences into chunks of at most `rows` rows. Without a cache a sequence that does not fit into one chunk takes
 * several in a row and shares its keys with no other.
 * @param capacity positions a cache slot has, where there is a cache
 * @param longAfter longer sequences rotate otherwise (longrope), and share no chunk with others. With a cache its capacity
 *   counts: what is kept cannot be rotated anew.
 */
export function cutChunks(
  sequences: readonly Sequence[],
  rows: number,
  capacity?: number,
  longAfter = Number.POSITIVE_INFINITY,
): Chunk[] {
  const chunks: Chunk[] = [];
  let open: Piece[] = [];
  let used = 0;
  let long = false;
  const close = (shared: boolean) => {
    if (open.length > 0) chunks.push({ ...makeChunk(sequences, open, used, shared, capacity), long });
    open = [];
    used = 0;
  };
  for (const [s, { ids, start = 0 }] of sequences.entries()) {
    const isLong = (capacity ?? start + ids.length) > longAfter;
    if (used + ids.length > rows || isLong !== long) close(true);
    long = isLong;
    for (let begin = 0; begin < ids.length; begin += rows) {
      const count = Math.min(rows, ids.length - begin);
      open.push({ sequence: s, row: used, begin, count });
      used += count;
      if (ids.length > rows) close(false);
    }
  }
  close(true);
  return chunks;
}

function makeChunk(
  sequences: readonly Sequence[],
  pieces: Piece[],
  rows: number,
  shared: boolean,
  capacity: number | undefined,
): Omit<Chunk, 'long'> {
  const ids = new Uint32Array(rows);
  const positions = new Uint32Array(rows);
  const places = new Uint32Array(2 * rows);
  const groups: number[] = [];
  const runs: number[] = [];
  const longest = Math.max(...pieces.map((p) => sequences[p.sequence]!.ids.length));
  const slotRows = capacity ?? longest;
  for (const [i, { sequence, row, begin, count }] of pieces.entries()) {
    const { ids: all, start = 0, slot = 0 } = sequences[sequence]!;
    // without a cache the pieces of a chunk lie one after the other; a long sequence has the keys for itself
    const place = capacity === undefined ? (shared ? i : 0) : slot;
    const base = place * slotRows;
    runs.push(row, count, place, start + begin === 0 ? 1 : 0);
    for (let r = 0; r < count; r++) {
      ids[row + r] = all[begin + r]!;
      positions[row + r] = start + begin + r;
      places[2 * (row + r)] = base + start + begin + r;
      places[2 * (row + r) + 1] = start + begin + r;
      if (r % GROUP_ROWS === 0)
        groups.push(row + r, Math.min(GROUP_ROWS, count - r), base, start + begin + r);
    }
  }
  return {
    pieces,
    rows,
    ids,
    positions,
    places,
    groups: Uint32Array.from(groups),
    runs: Uint32Array.from(runs),
    keyRows: (shared ? pieces.length : 1) * longest,
  };
}

/** Whole sequences fit the model: ids within the vocabulary, positions within its table and the cache. */
export function checkSequences(
  sequences: readonly Sequence[],
  architecture: Architecture,
  cache?: { slots: number; capacity: number },
): void {
  for (const { ids, start = 0, slot = 0 } of sequences) {
    if (ids.length === 0) {
      throw new AmalgamError('TextEmpty', 'There are no tokens to run the model on.', 'Give it some text.');
    }
    for (let i = 0; i < ids.length; i++) {
      const id = ids[i]!;
      if (Number.isInteger(id) && id >= 0 && id < architecture.vocab) continue;
      throw new AmalgamError(
        'TokenOutOfRange',
        `Token ${i} is ${id}, but the model knows the ids 0 to ${architecture.vocab - 1} only.`,
        'The tokens come from another tokenizer. Use the tokenizer that belongs to the model.',
      );
    }
    const end = start + ids.length;
    const limit = Math.min(architecture.maxPositions ?? Number.POSITIVE_INFINITY, cache?.capacity ?? end);
    if (end > limit) {
      throw new AmalgamError(
        'ContextTooLong',
        `The text reaches position ${end}; there is room for ${limit}.`,
        'Use a shorter text, or a smaller window.',
      );
    }
    if (cache ? slot >= cache.slots : start > 0) {
      throw new AmalgamError(
        'Internal',
        'A sequence continues where nothing was kept.',
        'Please report this.',
      );
    }
  }
}
