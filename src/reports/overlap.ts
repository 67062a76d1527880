/** The masks of one model under two recipes, counted against each other. Plain data. */
import type { Recipe } from '../formats/recipe';
import type { BackendChoice } from './backend';
import type { DeltaStatisticsProgress } from './delta-statistics';

export interface OverlapRequest {
  /** Two recipes with one base, in the order of their runs. */
  recipes: readonly [Recipe, Recipe];
  /** Id of the contributor whose masks are compared; both recipes have it. */
  model: string;
  engine: BackendChoice;
}

/** Exact counts of one tensor: changes other than 0 that stay. */
export interface MaskOverlap {
  name: string;
  elements: number;
  /** Elements that each run keeps. */
  kept: readonly [number, number];
  /** Elements that both keep. */
  both: number;
}

export interface OverlapProgress extends Omit<DeltaStatisticsProgress, 'finished'> {
  finished: MaskOverlap[];
}
