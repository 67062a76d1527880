/** Searching for the settings of a recipe on texts. */
import type { Recipe } from '../formats/recipe';
import type { BackendChoice } from './backend';
import type { EvaluateManyRequest } from './evaluate';

export interface SearchRequest {
  /** Where the search starts; its weights, λ and density are searched for. */
  recipe: Recipe;
  /** What candidates are measured on. */
  inputs: EvaluateManyRequest['inputs'];
  window?: number;
  stride?: number;
  /** Merges measured at most, the first being the recipe as it is. */
  evaluations: number;
  seed: number;
  engine: BackendChoice;
}

/** A merge that was measured. */
export interface SearchPoint {
  /** By the names of the variables. */
  values: Record<string, number>;
  /** Geometric mean over the texts; null where it could not be merged or measured. */
  perplexity: number | null;
}

export interface SearchProgress {
  done: number;
  total: number;
  /** Candidates measured since the last message. */
  points: SearchPoint[];
  secondsLeft: number | null;
}

export interface SearchReport {
  variables: string[];
  /** In the order they were measured; the first is the recipe as it was. */
  points: SearchPoint[];
  best: number;
  /** The recipe with the best of them. */
  recipe: Recipe;
  /** Points that were found from an earlier run. */
  reused: number;
  seconds: number;
}
