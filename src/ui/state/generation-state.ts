/** State of the texts that models write. Plain, serializable data. */
import type { ErrorReport } from '../../errors';
import { generateOptions } from '../../evaluate/options';
import type { BlindTest } from '../../reports/blind-test';
import type { GenerateReport, GenerationSettings, RunTarget } from '../../reports/evaluate';
import { defaultsOf } from '../../reports/option';
import type { LossBlock } from '../../reports/paired-error';

export type WritingSettings = Required<GenerationSettings>;

export interface GenerationSlice {
  settings: WritingSettings;
  /** The latest generated texts, one column per model. */
  columns: readonly GenerationColumn[];
  /** Settings of the latest texts; null before the first time. */
  written: WritingSettings | null;
  /** Texts follow the recipe when it changes. */
  follows: boolean;
  /** Seconds that the latest change of a recipe took in the middle of a text. */
  turnSeconds: number | null;
  blind: BlindSlice;
  course: CourseSlice;
}

/** Perplexity of the recipe's merge on the chosen texts, as its settings change. */
export interface CourseSlice {
  /** Which models it is of: `modelsKey`. */
  of: string;
  /** Losses of a merge, by its `targetKey`, on the text of an id; the oldest first. */
  points: readonly { text: string; key: string; blocks: readonly LossBlock[] }[];
  /** A number is on its way. */
  busy: boolean;
  /** Why a merge could not be measured, by its `targetKey`. */
  failed: { key: string; error: ErrorReport } | null;
}

/** The blind test. */
export interface BlindSlice {
  /** It is shown in the place of the one prompt. */
  open: boolean;
  /** As typed, one a line; null: those that ship. */
  prompts: string | null;
  /** Ids of the table's rows of the two. */
  pair: readonly [string, string];
  /** The one that is voted on. */
  test: BlindTest | null;
  /** Those that are over, the newest first. */
  tests: readonly BlindTest[];
  error: ErrorReport | null;
}

export interface GenerationColumn {
  /** Id of the table's row for the same model. */
  id: string;
  label: string;
  /** Index of the contributor's color; null for base and merge. */
  color: number | null;
  target: RunTarget;
  status: 'waiting' | 'writing' | 'done' | 'failed' | 'canceled';
  /** The text is of other weights than the row has now. */
  stale: boolean;
  text: string;
  /** Lengths of the text at which it went on with a changed recipe. */
  turns: readonly number[];
  progress: { done: number; rate: number } | null;
  /** From the beginning until the prompt was read: weights opened, or merged in memory. */
  readySeconds: number | null;
  report: GenerateReport | null;
  error: ErrorReport | null;
}

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
  follows: true,
  turnSeconds: null,
  blind: {
    ...{ open: false, prompts: null, pair: ['base', 'run now'], test: null, tests: [] },
    error: null,
  },
  course: { of: '', points: [], busy: false, failed: null },
};
