/**
 * `amalgam`: what the command does, for other programs in Node. Recipes are YAML; a model is a folder, a GGUF file, a Hub id, or
 * `model+adapter`, looked up in `folder` first. Every call rejects with an AmalgamError: a code, words, and the next step.
 */
import type { BackendChoice } from '../reports/backend';
import type {
  EvaluateReport,
  GenerateReport,
  GenerationSettings,
  RunningProgress,
} from '../reports/evaluate';
import type { Progress } from '../reports/job';
import type { MergeReport } from '../reports/merge';
import type { PlanReport } from '../reports/plan';

export { AmalgamError, type ErrorCode } from '../errors';
export type { EvaluateReport, GenerateReport, MergeReport, PlanReport, Progress, RunningProgress };

export interface Options {
  /** Where models, texts and outputs are meant from. Default: the working folder. */
  folder?: string;
  /** Address of another hub. */
  hub?: string;
  /** A folder that keeps downloads and masks. */
  cache?: string;
  engine?: BackendChoice;
  /** Ends the job: it rejects with `Canceled`. */
  signal?: AbortSignal;
  /** Warnings, line by line. */
  onNote?(line: string): void;
}

export interface MergeOptions extends Options {
  /** The folder to write: it must not exist or be empty. */
  out: string;
  /** Goes on with what an interrupted merge has written, and leaves it where this one fails. */
  resume?: boolean;
  /** Keeps no inputs: those on the Hub pass by. */
  stream?: boolean;
  onProgress?(progress: Progress): void;
}

export interface RunOptions extends Options {
  onProgress?(progress: RunningProgress): void;
}

/** What a merge would do, from headers alone. A recipe that does not fit its models has `clean: false` and says why. */
export declare function plan(recipe: string, options?: Options): Promise<PlanReport>;

/** Merges into a folder. */
export declare function merge(recipe: string, options: MergeOptions): Promise<MergeReport>;

/** Perplexity of a model, or of the merge of a recipe file (`*.yml`) before it is written, on a text. */
export declare function perplexity(
  model: string,
  text: string,
  options?: RunOptions,
): Promise<EvaluateReport>;

/** Continues a prompt with a model, or with the merge of a recipe file before it is written. */
export declare function generate(
  model: string,
  prompt: string,
  options?: RunOptions & Partial<Omit<GenerationSettings, 'prompt'>>,
): Promise<GenerateReport>;
