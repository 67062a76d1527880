import type { Tile } from './tiles';

/** A selection by values that are computed from all contributors of a tensor. */
export interface Score {
  /** Looks at the tile before anything is trimmed; first pass only. */
  measure?(tile: Tile, elements: number): Promise<void>;
  /** Decides what is kept, when every tile has been measured. */
  search(): Promise<void>;
  /** Trims the task vectors of the tile. The number kept goes to work.kept, by the selectors' counters. */
  trim(tile: Tile, elements: number): void;
}
