/** Searching for the settings of a recipe on texts, or on tasks. */
import type { Recipe } from '../formats/recipe';
import type { BackendChoice } from './backend';
import type { EvaluateManyRequest } from './evaluate';
import type { ScoreTasksRequest } from './tasks';

export interface SearchRequest {
  /** Starting point of the search; its weights, λ and density are searched for. */
  recipe: Recipe;
  /** Texts that candidates are measured on; none where there are tasks. */
  inputs: EvaluateManyRequest['inputs'];
  /** Tasks, by whose accuracy candidates are measured. */
  tasks?: SearchTasks;
  window?: number;
  stride?: number;
  /** Merges to measure, the first being the recipe as it is; the last generation is measured whole. */
  evaluations: number;
  seed: number;
  engine: BackendChoice;
}

/** Items of tasks, the same for all candidates, and the metric of which the mean over the tasks counts. */
export interface SearchTasks
  extends Pick<ScoreTasksRequest, 'tasks' | 'limit' | 'sampleSeed' | 'fewshot' | 'fewshotSeed'> {
  metric: string;
}

/** A merge that was measured. */
export interface SearchPoint {
  /** By the names of the variables. */
  values: Record<string, number>;
  /** Geometric mean over the texts; null where it could not be merged or measured, and on tasks. */
  perplexity: number | null;
  /** On tasks. */
  score?: TaskObjective;
}

/** Score of a merge on the tasks of a search. */
export interface TaskObjective {
  /** Mean of the metric over the tasks, and its standard error. */
  value: number;
  stderr: number | null;
  /** Mean over the tasks of ln of the right answers' share of the choices' probability: of equal values the larger is better. */
  rightLogShare: number;
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
