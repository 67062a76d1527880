/** Input of a search for a threshold. */
import type { BackendBuffer } from '../../backend/backend';
import type { Search, Threshold } from './radix-select';
import type { Tile } from './tiles';

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
export type FillKeys = (tile: Tile, elements: number) => void;
