import type { BackendBuffer } from '../../backend/backend';
import type { Tile } from './tiles';

/**
 * Exact top-k by three histogram digits over the bit pattern of |τ| (31 bits = 11 + 10 + 10), never a sort. The counts
 * are integers, so tiles and order do not matter; ties at the threshold go to the lowest flat index.
 */

/** The digits: bins are taken from (key >> shift), for keys whose bits above `prefixShift` equal the prefix so far. */
export const DIGITS = [
  { shift: 20, bins: 2048, prefixShift: 31 },
  { shift: 10, bins: 1024, prefixShift: 20 },
  { shift: 0, bins: 1024, prefixShift: 10 },
] as const;

/** State of a selection: the bits of the threshold found so far and how many of the bin are still wanted. */
export interface Search {
  prefix: number;
  /** Elements wanted among those whose key begins with `prefix`. */
  wanted: number;
  /** Elements whose key begins with `prefix`. */
  available: number;
}

/** k = clamp(⌊ρn⌋, 1, n), and 0 only for ρ = 0. */
export function keptCount(density: number, elements: number): number {
  if (density <= 0 || elements === 0) return 0;
  return Math.min(elements, Math.max(1, Math.floor(density * elements)));
}

/** The search for the k largest of n. */
export function beginSearch(k: number, elements: number): Search {
  return { prefix: 0, wanted: k, available: elements };
}

/** Narrows the search by one digit's histogram. */
export function narrow(search: Search, digit: number, bins: ArrayLike<number>): Search {
  const width = DIGITS[digit]!.bins;
  const { prefix: bin, wanted, available } = takeBin(bins, search.wanted, width);
  return { prefix: search.prefix * width + bin, wanted, available };
}

/** The bin in which the `wanted`-th largest of all counted elements lies, as the prefix of a search in that bin. */
export function takeBin(bins: ArrayLike<number>, wanted: number, width = bins.length): Search {
  let left = wanted;
  for (let bin = width - 1; bin >= 0; bin--) {
    const count = bins[bin]!;
    if (count >= left) return { prefix: bin, wanted: left, available: count };
    left -= count;
  }
  throw new RangeError(`histogram holds fewer than ${wanted} elements`);
}

/** A finished selection as the select-threshold kernel takes it. */
export interface Threshold {
  /** Bit pattern of the smallest |τ| kept. */
  key: number;
  /** Blocks before this one keep every element equal to `key`; this block keeps `cutQuota` of them. */
  cutBlock: number;
  cutQuota: number;
}

export const NO_CUT = 0xffffffff;

/** Keeps nothing: no finite |τ| lies above this key, and no quota is given. */
export const KEEP_NONE: Threshold = { key: 0x7fffffff, cutBlock: 0, cutQuota: 0 };

/** Parameters of the select-threshold kernel: what lies inside the first threshold and not inside the second stays. */
export function thresholdWords(outer: Threshold, inner = KEEP_NONE) {
  return {
    key: outer.key,
    cut_block: outer.cutBlock,
    cut_quota: outer.cutQuota,
    inner_key: inner.key,
    inner_cut_block: inner.cutBlock,
    inner_cut_quota: inner.cutQuota,
  };
}

/** The block in which the quota of equal elements runs out. */
export function findCut(key: number, wanted: number, equalPerBlock: ArrayLike<number>): Threshold {
  let left = wanted;
  for (let block = 0; block < equalPerBlock.length; block++) {
    const n = equalPerBlock[block]!;
    if (n >= left) return { key, cutBlock: block, cutQuota: left };
    left -= n;
  }
  throw new RangeError(`fewer than ${wanted} elements equal the threshold`);
}

/** |τ| of a key. */
export function keyToMagnitude(key: number): number {
  return new Float32Array(new Uint32Array([key]).buffer)[0]!;
}

/** The key of a magnitude. */
export function magnitudeToKey(magnitude: number): number {
  return new Uint32Array(new Float32Array([magnitude]).buffer)[0]! & 0x7fffffff;
}

// Input of a search for a threshold.

/** One search over the magnitudes that a tile has at word `offset` of `buffer`. */
export interface KeySearch {
  buffer: BackendBuffer;
  offset: number;
  /** How many, where they are not those of a tile. */
  elements?: number;
  search: Search;
  threshold?: Threshold;
}

/** Puts the keys of a tile where the searches look for them. */
export type FillKeys = (tile: Tile, elements: number) => unknown;
