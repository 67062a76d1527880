/** State of the Evaluate tab: texts, protocol, measurements, generated texts. Plain, serializable data. */

import type { ErrorReport } from '../../errors';
import { generateOptions, protocolOptions } from '../../evaluate/options';
import type { EvaluateReport, GenerateReport, GenerationSettings, RunTarget } from '../../reports/evaluate';
import { defaultsOf } from '../../reports/option';
import type { SearchPoint } from '../../reports/search';
import type { RecipeState } from './recipe-state';

export interface EvaluationSlice {
  texts: readonly EvaluationText[];
  /** The sample texts are opened when the tab is first shown. */
  opening: 'not yet' | 'opening' | 'done' | 'failed';
  openError: ErrorReport | null;
  /** `quick`: only the beginning of each text is scored. */
  amount: 'quick' | 'full';
  /** Tokens a model sees at once, and by which windows advance. */
  window: number;
  stride: number;
  /** By `outcomeKey`: measured once, and saved for the next visit where that is sound. */
  outcomes: ReadonlyMap<string, Outcome>;
  /** Row → its last measured target, shown dimmed once the recipe has changed. */
  lastOf: ReadonlyMap<string, MeasuredTarget>;
  work: EvaluationWork | null;
  /** Cost of the last measurement, all its models together; null before the first. */
  cost: EvaluationCost | null;
  /** The last search for settings, at work or over; null before the first. */
  search: SearchRun | null;
}

/** A search for the settings of a recipe. */
export interface SearchRun {
  /** On the chosen texts, or on the chosen tasks. */
  by: 'perplexity' | 'accuracy';
  /** The recipe that it began with. */
  recipe: RecipeState;
  /** Measured candidates so far, the first with the settings the search began with. */
  points: readonly SearchPoint[];
  error: ErrorReport | null;
}

/** Models that ran side by side: bytes of weights read, and peak bytes on the device. */
interface EvaluationCost {
  models: number;
  bytesRead: number;
  peakBytes: number;
}

/** A text to measure on. Its content never changes under its id. */
export interface EvaluationText {
  id: string;
  name: string;
  text: string;
  /** SHA-256 in hex of the scored part, by which outcomes are saved. */
  sha256: { quick: string; full: string };
  origin: 'sample' | 'own';
  /** Is it a column? */
  chosen: boolean;
}

/**
 * `bytes`: of the model's weights if it were saved. `earlier`: when it was measured, in milliseconds since 1970, if that
 * was on an earlier visit.
 */
export type Outcome =
  | { report: EvaluateReport; bytes: number | null; earlier?: number }
  | { error: ErrorReport };

interface MeasuredTarget {
  /** As `targetKey` has it. */
  target: string;
  title: string;
}

/** Measuring at work: models side by side on the same texts, one such group after the other. */
export interface EvaluationWork {
  groups: readonly (readonly PlannedCell[])[];
  /** Index of the group at work. */
  at: number;
}

export interface PlannedCell {
  key: string;
  rowId: string;
  rowLabel: string;
  textId: string;
  textName: string;
  target: RunTarget;
  /** Number of characters to score, for the estimate of the remaining time. */
  characters: number;
  /** Measured separately, after all others. */
  last: boolean;
}

export interface GenerationSlice {
  settings: GenerationSettings;
  /** The latest generated texts, one column per model. */
  columns: readonly GenerationColumn[];
  /** Settings of the latest texts; null before the first time. */
  written: GenerationSettings | null;
}

export interface GenerationColumn {
  /** Id of the table's row for the same model. */
  id: string;
  label: string;
  /** Index of the contributor's color; null for base and merge. */
  color: number | null;
  target: RunTarget;
  status: 'waiting' | 'writing' | 'done' | 'failed' | 'canceled';
  text: string;
  progress: { done: number; rate: number } | null;
  report: GenerateReport | null;
  error: ErrorReport | null;
}

export const initialEvaluation: EvaluationSlice = {
  texts: [],
  opening: 'not yet',
  openError: null,
  amount: 'quick',
  ...defaultsOf(protocolOptions),
  outcomes: new Map(),
  lastOf: new Map(),
  work: null,
  cost: null,
  search: null,
};

/** Prompts before the user writes one: of the sample family, and of other models. */
export const SAMPLE_PROMPT = 'Recipe:';
export const PROMPT = 'Once upon a time';

export const initialGeneration: GenerationSlice = {
  settings: {
    prompt: SAMPLE_PROMPT,
    chat: false,
    ...defaultsOf(generateOptions),
    // several columns side by side: short, and not each the most probable text
    ...{ maxTokens: 60, temperature: 0.4, topP: 0.95 },
  },
  columns: [],
  written: null,
};
