/**
 * Results of the statistics pass: enough of every tensor's task vectors to predict a merge under any setting without merging.
 * Plain data, like all that crosses the worker boundary.
 */
import type { Recipe } from '../formats/recipe';
import type { BackendChoice, Computed } from './backend';
import type { Progress } from './job';
import type { TensorOutline } from './plan';

export interface DeltaStatisticsRequest {
  /** Base and contributors; the method and its parameters do not matter. */
  recipe: Recipe;
  engine: BackendChoice;
}

export interface DeltaStatisticsReport extends Computed {
  tensors: DeltaStatistics[];
}

/** The task vectors of one tensor. */
export interface DeltaStatistics extends TensorOutline {
  /** ⟨vᵢ, vⱼ⟩ of W₀ and the τᵢ, in that order: (1 + contributors)². Exact sums in f64 over f32 blocks. */
  products: number[][];
  contributors: ContributorStatistics[];
  sample: TensorSample;
  /** NaN and Inf counted in base and contributors. */
  nonFinite: number;
}

interface ContributorStatistics {
  id: string;
  /** Exact counts of |τ| by the upper bits of its f32 pattern, eight bins an octave: bins `first` … of 2048. */
  histogram: { first: number; counts: Uint32Array };
}

/** Elements on a regular grid over the tensor seen as a matrix; what depends on several models at once is judged by it. */
export interface TensorSample {
  rows: number;
  cols: number;
  /** W₀ at the grid's places, row by row. */
  base: Float32Array;
  /** τᵢ at the same places. */
  changes: Float32Array[];
}

export interface DeltaStatisticsProgress extends Omit<Progress, 'phase' | 'finished'> {
  phase: 'planning' | 'downloading' | 'measuring';
  /** Statistics of tensors finished since the last message. */
  finished: DeltaStatistics[];
}
