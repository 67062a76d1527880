/** Running models, as it crosses the worker boundary: perplexity and generated text. */

import type { ErrorReport } from '../errors';
import type { Message } from '../formats/conversations';
import { formatBytes, formatCounted } from '../formats/quantity';
import type { Recipe } from '../formats/recipe';
import type { BackendChoice, Computed } from './backend';
import type { LossBlock } from './paired-error';

/** The evaluation report: one schema for command, studio and tests. */
export interface EvaluateReport extends Computed {
  /** e^meanNll. */
  perplexity: number;
  /** Mean of −ln p over the scored tokens, in nats. */
  meanNll: number;
  /** Tokens scored: all but the first, which counts only where tokens are masked. */
  tokens: number;
  /** Total loss in bits per UTF-8 byte of the text: comparable across tokenizers. Null when only ids were given. */
  bitsPerByte: number | null;
  /** `bos`: the id put in front of the text, or null. `masked`: the model fills in masked tokens, one of so many at a time. */
  protocol: { window: number; stride: number; bos: number | null; masked?: number };
  /** −ln p of every scored token in nats, in order, on request. */
  perToken?: number[];
  /** The same added up in blocks, for errors and paired differences; absent in reports of older versions. */
  blocks?: LossBlock[];
  /** Conversations of the text that the model's chat template refuses, and that are not measured. */
  leftOut?: number;
  /** Most bytes held on the device. */
  peakBytes: number;
}

/**
 * The report over several texts of one model: perplexity is e to the mean of their mean losses, so that a text counts as much as
 * another, whatever its length. Tokens, time and bytes are those of all.
 */
export function overTexts(reports: readonly EvaluateReport[]): EvaluateReport {
  const [first] = reports;
  if (!first || reports.length === 1) return first!;
  const sum = (of: (report: EvaluateReport) => number) => reports.reduce((total, one) => total + of(one), 0);
  const meanNll = sum((one) => one.meanNll) / reports.length;
  const bits = (one: EvaluateReport) => (one.meanNll * one.tokens) / Math.LN2;
  const leftOut = sum((one) => one.leftOut ?? 0);
  const known = reports.every(({ bitsPerByte }) => bitsPerByte !== null && bitsPerByte > 0);
  const { perToken: _, blocks: __, ...shared } = first;
  return {
    ...shared,
    perplexity: Math.exp(meanNll),
    meanNll,
    tokens: sum((one) => one.tokens),
    bitsPerByte: known ? sum(bits) / sum((one) => bits(one) / one.bitsPerByte!) : null,
    ...(leftOut > 0 && { leftOut }),
    seconds: sum((one) => one.seconds),
    peakBytes: Math.max(...reports.map(({ peakBytes }) => peakBytes)),
  };
}

/** Model to run: one as a recipe names it, or the merge of a recipe, computed as it is read and never written. */
export type RunTarget = { model: string } | { recipe: Recipe };

/** A text, or its token ids. */
export type TextInput = { text: string } | { ids: number[] };

/** Models and merges on the same texts, side by side: each input byte is read once a pass for all of them. */
export interface EvaluateManyRequest {
  targets: RunTarget[];
  inputs: TextInput[];
  /** Tokens the model sees at once, default 256, and by which windows advance, default 128. */
  window?: number;
  stride?: number;
  perToken?: boolean;
  /** Default: as they are stored. */
  weights?: KeptWeights;
  engine: BackendChoice;
}

export interface EvaluateManyReport {
  /** In the order of the targets. */
  models: EvaluatedModel[];
  /** Bytes of weights read from files, for all of them together. */
  bytesRead: number;
  /** Most bytes held on the device, all that went side by side together. */
  peakBytes: number;
  /** Groups that went one after the other because together they would not fit. */
  batches: number;
  seconds: number;
}

export interface EvaluatedModel {
  /** In the order of the texts. `seconds` of a report: the model's own, and its share of reading. */
  outcomes: ({ report: EvaluateReport } | { error: ErrorReport })[];
  /** Bytes of its weights if it were saved; null where it cannot be planned. */
  bytes: number | null;
}

export interface GenerationSettings {
  prompt: string;
  /** The prompt is a user's message, put into the model's chat template; else the beginning of a text. */
  chat: boolean;
  maxTokens: number;
  /** 0 takes the most probable token always. */
  temperature: number;
  topP: number;
  seed: number;
  /** How weights are kept. Default: at 8 bits where they do not fit into memory as they are stored. */
  weights?: KeptWeights;
}

export interface GenerateRequest extends GenerationSettings {
  target: RunTarget;
  /** A conversation to be answered, in the place of the prompt. */
  messages?: readonly Message[];
  /** A model that is asked what it would have given each generated token. */
  against?: RunTarget;
  /** The model stays open for the next text, until another job begins, and follows `steer`. */
  live?: boolean;
  engine: BackendChoice;
}

export const KEPT_WEIGHTS = ['auto', 'stored', '8-bit'] as const;
export type KeptWeights = (typeof KEPT_WEIGHTS)[number];

/** Asks for the memory of a text that one of several models writes, before anything is opened. */
export interface MemoryRequest extends Pick<GenerateRequest, 'against' | 'weights' | 'engine' | 'maxTokens'> {
  targets: readonly RunTarget[];
  /** Tokens of the prompt, at most. */
  promptTokens: number;
}

/** Memory of a text, at most: of the model that takes most. */
export interface MemoryReport {
  bytes: number;
  /** Of them, weights that stay, what changes them not counted, and the room for all. */
  weightBytes: number;
  roomBytes: number;
  factorBytes: number;
  /** Changes of whole contributors, which every token reads beside the weights. */
  differenceBytes: number;
  /** Keys, values and states of so many tokens. */
  cacheBytes: number;
  tokens: number;
  /** Merging in memory. */
  mergeBytes: number;
  /** Weights that do not stay: they are read, or merged, again for each token. */
  passingBytes: number;
  /** Weights are kept at 8 bits. */
  eightBits?: true;
}

/** `At most 2.9 GB of memory for 120 tokens: weights 2.5 GB of 6 GB that may stay, LoRA 0.2 GB, …` */
export function memoryWords(report: MemoryReport): string {
  const { bytes, tokens, weightBytes, roomBytes, cacheBytes, mergeBytes, passingBytes } = report;
  const { factorBytes, differenceBytes } = report;
  const kept = report.eightBits ? ' at 8 bits' : '';
  const rest = bytes - weightBytes - factorBytes - differenceBytes - cacheBytes - mergeBytes;
  const parts = [
    `weights${kept} ${formatBytes(weightBytes)} of ${formatBytes(roomBytes)} that may stay`,
    ...(factorBytes > 0 ? [`LoRA ${formatBytes(factorBytes)}`] : []),
    ...(differenceBytes > 0 ? [differenceWords(report)] : []),
    `context ${formatBytes(cacheBytes)}`,
    ...(mergeBytes > 0 ? [`merging ${formatBytes(mergeBytes)}`] : []),
    ...(rest > 0 ? [`computing ${formatBytes(rest)}`] : []),
  ];
  const passing =
    passingBytes > 0
      ? ` ${formatBytes(passingBytes)} of weights do not fit and are read for every token.`
      : '';
  const all = `At most ${formatBytes(bytes)} of memory for ${formatCounted(tokens, 'token')}`;
  return `${all}: ${parts.join(', ')}.${passing}`;
}

/** What is kept of whole contributors, and what it costs: tokens take as long as the bytes that each reads. */
function differenceWords({ weightBytes, differenceBytes }: MemoryReport): string {
  const speed = Math.round((100 * weightBytes) / (weightBytes + differenceBytes));
  return `difference ${formatBytes(differenceBytes)} (≈\u00a0${speed}\u00a0% of the merged speed)`;
}

/** Asks several models to continue the same prompts, each prompt with random numbers of its own. */
export interface AnswersRequest extends Omit<GenerationSettings, 'prompt'> {
  targets: RunTarget[];
  prompts: string[];
  engine: BackendChoice;
}

/** Asks for the losses of a merge on the first tokens of some stretches of a text, while nothing else is asked for. */
export interface LivePerplexityRequest {
  recipe: Recipe;
  stretches: readonly TextInput[];
  /** As of the texts of the model. */
  weights?: KeptWeights;
  engine: BackendChoice;
}

/** A generated token: its text (empty where only a later one completes a character) and its probability at temperature 1. */
export interface WrittenToken {
  text: string;
  probability: number;
  /** What `against` gives it after the same tokens; absent without one, and where that has another vocabulary. */
  against?: number;
}

export interface GenerateReport extends Computed {
  /** Generated text, without the prompt. */
  text: string;
  /** Tokens that the model read before it. */
  promptTokens: number;
  ids: number[];
  tokens: WrittenToken[];
  /** `stop`: the model ended its text. `length`: the limit was reached. */
  ended: 'stop' | 'length';
  tokensPerSecond: number;
  /** Most bytes held on the device: weights, activations, keys and values. */
  peakBytes: number;
  /** Weights were kept at 8 bits: the text is that of a model that differs a little. */
  eightBits?: true;
}

/** Asks for the effects of every weight of a merge on a text that was written. */
export interface EffectsRequest {
  recipe: Recipe;
  /** Whose weights are put in their place, one at a time: the base, or the merge without a contributor. */
  without: RunTarget[];
  prompt: string;
  chat: boolean;
  /** Ids of the text behind the prompt, whose probability is looked at. */
  ids: number[];
  engine: BackendChoice;
}

/** What a weight of a merge does to a text, against the other one: Σ ln p with it less Σ ln p without it, in nats. */
export interface WeightEffect {
  /** Name of the tensor. */
  name: string;
  effect: number;
}

/** Progress of running a model. */
export interface RunningProgress {
  /** `preparing`: a merge is calibrated. */
  phase: 'downloading' | 'preparing' | 'running';
  /** Bytes while downloading, tokens while running; while preparing, what each step counts. */
  done: number;
  total: number;
  /** Tokens a second; bytes a second while downloading, 0 where not measured. */
  rate: number;
  secondsLeft: number | null;
  /** Generation: the text that came since the last message. */
  text?: string;
  /** Generation: the text goes on with the recipe that it was steered to, whose merge took so long. */
  turnSeconds?: number;
  /** Several models: those that are finished, by their index among the targets. */
  finished?: { index: number; model: EvaluatedModel }[];
}
