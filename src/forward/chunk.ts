/** Sequences cut into chunks of rows, which pass a block at once. */

import { GROUP_ROWS } from '../backend/kernels/attention';
import { AmalgamError } from '../errors';
import type { Architecture } from '../models/architecture';

/** Token ids at consecutive positions. */
export interface Sequence {
  ids: ArrayLike<number>;
  /** Kind of text of each id, of models that add one to the embedding; 0 where there are none. */
  types?: ArrayLike<number>;
  /** Position of the first id; 0 unless a cache holds earlier tokens. */
  start?: number;
  /** Slot of the cache. */
  slot?: number;
  /**
   * First index of the result (default: none is wanted): for losses those of ids[from …], from ≥ 1; for logits those of the
   * rows from ….
   */
  from?: number;
  /** In its place, for losses: −ln p of `id` behind ids[at], whatever follows there. */
  asks?: readonly { at: number; id: number }[];
  /**
   * Continues the sequence with this index, which comes earlier, continues none itself, and is run once for all that
   * continue it. Without a cache only.
   */
  after?: number;
}

/** A stretch of one sequence inside a chunk. */
interface Piece {
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
  types: Uint32Array<ArrayBuffer>;
  /** Per row: the row of the keys and values it is stored in, and its position. */
  places: Uint32Array<ArrayBuffer>;
  /** Rows in fours that share a sequence: shaders/lib/attention.wgsl. */
  groups: Uint32Array<ArrayBuffer>;
  /** Pieces for what runs along a sequence: shaders/sequence/causal-conv.wgsl. */
  runs: Uint32Array<ArrayBuffer>;
  /** True when its sequences are longer than the model's original positions (longrope). */
  long: boolean;
  /** Rows of keys and values that the chunk uses when there is no cache, and sequences whose states it has room for. */
  keyRows: number;
  slots: number;
  /** State copied from slot to slot before the chunk is run. */
  copies: SlotCopy[];
  /** Whether it continues in the keys of the chunk before it. */
  goesOn: boolean;
}

/** The first `positions` rows of a slot of `slotRows` are copied to another slot. */
export interface SlotCopy {
  from: number;
  to: number;
  positions: number;
  slotRows: number;
}

/** Rows of keys that contexts and what continues them may take together, for each row of a chunk. */
const KEYS_PER_ROW = 8;

/**
 * Cuts sequences into chunks of at most `rows` rows. Without a cache a sequence that does not fit into one chunk takes
 * several in a row and shares its keys with no other. Sequences that others continue go first, as many as fit a chunk;
 * the chunks of those that continue them follow, over the same keys.
 * @param capacity positions a cache slot has, where there is a cache
 * @param longAfter longer sequences rotate otherwise (longrope), and share no chunk with others. With a cache its capacity
 *   counts: cached keys cannot be rotated anew.
 * @param mostKeyRows rows of keys that fit a buffer
 */
export function cutChunks(
  sequences: readonly Sequence[],
  rows: number,
  capacity?: number,
  longAfter = Number.POSITIVE_INFINITY,
  mostKeyRows = Number.POSITIVE_INFINITY,
): Chunk[] {
  const chunks: Chunk[] = [];
  let open: Piece[] = [];
  let used = 0;
  let long = false;
  const close = (shared: boolean) => {
    if (open.length > 0) {
      const longest = Math.max(...open.map((p) => sequences[p.sequence]!.ids.length));
      const slots = shared ? open.length : 1;
      const keys = { slots, slotRows: capacity ?? longest };
      // without a cache the pieces of a chunk lie one after the other; a long sequence has the keys for itself
      const slot = (piece: Piece, i: number) =>
        capacity === undefined ? (shared ? i : 0) : (sequences[piece.sequence]!.slot ?? 0);
      chunks.push({ ...makeChunk(sequences, open, used, keys, slot), long });
    }
    open = [];
    used = 0;
  };
  const alone: number[] = [];
  const { families, continued } = familiesOf(sequences);
  for (const [s, { after }] of sequences.entries())
    if (after === undefined && !continued.has(s)) alone.push(s);
  for (const s of alone) {
    const { ids, start = 0 } = sequences[s]!;
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
  const mostKeys = Math.min(mostKeyRows, KEYS_PER_ROW * rows);
  for (const bundle of bundleFamilies(families, rows, mostKeys, longAfter)) {
    chunks.push(...bundleChunks(sequences, bundle, rows, longAfter));
  }
  return chunks;
}

/** A sequence and those that continue it. */
interface Family {
  first: number;
  branches: number[];
  /** Ids of the first, and of the longest whole. */
  shared: number;
  longest: number;
}

function familiesOf(sequences: readonly Sequence[]): { families: Family[]; continued: ReadonlySet<number> } {
  const families = new Map<number, Family>();
  for (const [s, { ids, after }] of sequences.entries()) {
    if (after === undefined) continue;
    const shared = sequences[after]!.ids.length;
    const family = families.get(after) ?? { first: after, branches: [], shared, longest: shared };
    family.branches.push(s);
    family.longest = Math.max(family.longest, shared + ids.length);
    families.set(after, family);
  }
  return { families: [...families.values()], continued: new Set(families.keys()) };
}

/** Families that go together: their first sequences fit a chunk, and the keys of all the room for keys. */
function bundleFamilies(
  families: readonly Family[],
  rows: number,
  mostKeys: number,
  longAfter: number,
): Family[][] {
  const bundles: Family[][] = [];
  let used = 0;
  let slots = 0;
  let longest = 0;
  for (const family of families) {
    const own = 1 + family.branches.length;
    const before = bundles.at(-1)?.[0];
    const fits =
      before !== undefined &&
      used + family.shared <= rows &&
      (slots + own) * Math.max(longest, family.longest) <= mostKeys &&
      before.longest > longAfter === family.longest > longAfter;
    if (!fits) {
      bundles.push([]);
      used = 0;
      slots = 0;
      longest = 0;
    }
    bundles.at(-1)!.push(family);
    used += family.shared;
    slots += own;
    longest = Math.max(longest, family.longest);
  }
  return bundles;
}

/** The chunks of a bundle: what is continued, then what continues it, in as many chunks as each takes. */
function bundleChunks(
  sequences: readonly Sequence[],
  bundle: readonly Family[],
  rows: number,
  longAfter: number,
): Chunk[] {
  const order = [...bundle.map(({ first }) => first), ...bundle.flatMap(({ branches }) => branches)];
  const slotOf = new Map(order.map((sequence, slot) => [sequence, slot]));
  const slotRows = Math.max(...bundle.map(({ longest }) => longest));
  const copies = bundle.flatMap(({ first, branches, shared }) =>
    branches.map((s) => ({ from: slotOf.get(first)!, to: slotOf.get(s)!, positions: shared, slotRows })),
  );
  const chunks: Chunk[] = [];
  let open: Piece[] = [];
  let used = 0;
  const close = (before: SlotCopy[]) => {
    if (open.length === 0) return;
    const made = makeChunk(
      sequences,
      open,
      used,
      { slots: order.length, slotRows },
      (piece) => slotOf.get(piece.sequence)!,
    );
    chunks.push({ ...made, long: slotRows > longAfter, copies: before, goesOn: chunks.length > 0 });
    open = [];
    used = 0;
  };
  const take = (list: readonly number[], before: SlotCopy[]) => {
    for (const sequence of list) {
      const { length } = sequences[sequence]!.ids;
      for (let begin = 0; begin < length; ) {
        if (used === rows) close(before.splice(0));
        const count = Math.min(rows - used, length - begin);
        open.push({ sequence, row: used, begin, count });
        used += count;
        begin += count;
      }
    }
    close(before.splice(0));
  };
  take(order.slice(0, bundle.length), []);
  take(order.slice(bundle.length), copies);
  return chunks;
}

/** First position of a sequence: after the one it continues, or after the cached tokens. */
function startOf(sequences: readonly Sequence[], { start = 0, after }: Sequence): number {
  return after === undefined ? start : sequences[after]!.ids.length;
}

function makeChunk(
  sequences: readonly Sequence[],
  pieces: Piece[],
  rows: number,
  keys: { slots: number; slotRows: number },
  slotOf: (piece: Piece, index: number) => number,
): Omit<Chunk, 'long'> {
  const ids = new Uint32Array(rows);
  const positions = new Uint32Array(rows);
  const types = new Uint32Array(rows);
  const places = new Uint32Array(2 * rows);
  const groups: number[] = [];
  const runs: number[] = [];
  for (const [i, piece] of pieces.entries()) {
    const { sequence, row, begin, count } = piece;
    const { ids: all, types: kinds } = sequences[sequence]!;
    const start = startOf(sequences, sequences[sequence]!);
    const place = slotOf(piece, i);
    const base = place * keys.slotRows;
    runs.push(row, count, place, start + begin === 0 ? 1 : 0);
    for (let r = 0; r < count; r++) {
      ids[row + r] = all[begin + r]!;
      positions[row + r] = start + begin + r;
      types[row + r] = kinds?.[begin + r] ?? 0;
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
    types,
    places,
    groups: Uint32Array.from(groups),
    runs: Uint32Array.from(runs),
    keyRows: keys.slots * keys.slotRows,
    slots: keys.slots,
    copies: [],
    goesOn: pieces[0]!.begin > 0,
  };
}

/** Whole sequences fit the model: ids within the vocabulary, positions within its table and the cache. */
export function checkSequences(
  sequences: readonly Sequence[],
  architecture: Architecture,
  cache?: { slots: number; capacity: number },
): void {
  for (const sequence of sequences) {
    const { ids, slot = 0, after } = sequence;
    const start = startOf(sequences, sequence);
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
    if (cache ? slot >= cache.slots || after !== undefined : start > 0 && after === undefined) {
      throw new AmalgamError(
        'Internal',
        'A sequence continues where nothing was kept.',
        'Please report this.',
      );
    }
  }
}
