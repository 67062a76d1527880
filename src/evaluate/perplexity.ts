/**
 * Perplexity of a text: how surprised a model is by each token, given those before; of a model that fills in masked tokens,
 * given those on both sides, every seventh token of a window masked at a time (about as many as in training), until each was.
 */

import { AmalgamError } from '../errors';
import { checkSequences, type Sequence } from '../forward/chunk';
import type { Runner } from '../forward/runner';
import type { EvaluateReport } from '../reports/evaluate';
import { defaultsOf } from '../reports/option';
import { lossBlocks } from '../reports/paired-error';
import { type EvaluateProgress, type GroupedPasses, groupedPasses } from './grouped-passes';
import { protocolOptions } from './options';

export interface EvaluateInput {
  /** Token ids, what stands in front of the text included. */
  ids: ArrayLike<number>;
  /** The id in front, where there is one: goes into the report. */
  bos: number | null;
  /** UTF-8 bytes of the text, for bits per byte; absent when only ids are known. */
  bytes?: number;
  /** Conversations that the model's chat template refuses: they are no part of the text. */
  leftOut?: number;
  /** Of models that fill in masked tokens: the mask, and the ids around every window. */
  masking?: { mask: number; before: readonly number[]; after: readonly number[] };
}

/** Of so many tokens one is masked. */
const MASK_EVERY = 7;

/** A sequence that is run for a text, and the tokens of the text whose losses it brings. */
interface Reading {
  text: number;
  rows: number;
  sequence(): Sequence;
  tokens: readonly number[];
}

export interface EvaluateProtocol {
  /** Tokens the model sees at once. */
  window: number;
  /** Tokens by which windows advance. */
  stride: number;
}

export const DEFAULT_PROTOCOL: EvaluateProtocol = defaultsOf(protocolOptions);

/** An evaluation in steps. */
export interface Evaluation extends GroupedPasses {
  /** One report per text, once `step` has returned false. */
  reports(options?: { perToken?: boolean }): EvaluateReport[];
}

/**
 * Checks beforehand whether a text can be scored.
 * @throws AmalgamError `TextEmpty`, `TextTooShort`, `Usage`, `TokenOutOfRange`, `ContextTooLong`
 */
export function checkInput({ architecture }: Runner, input: EvaluateInput, protocol: EvaluateProtocol): void {
  const sequences = readingsOf(input, 0, protocol).map((reading) => reading.sequence());
  checkSequences(sequences, architecture);
}

/** Tokens of the text that a window holds. */
function roomOf(window: number, { before, after }: NonNullable<EvaluateInput['masking']>): number {
  return window - before.length - after.length;
}

/** The first token that is scored. */
const firstOf = ({ masking }: EvaluateInput) => (masking ? 0 : 1);

/** Windows of a text that are run. @throws as `cutWindows` */
function readingsOf(input: EvaluateInput, text: number, { window, stride }: EvaluateProtocol): Reading[] {
  const { ids, masking } = input;
  if (!masking) {
    return cutWindows(ids.length, window, stride).map(({ begin, end, from }) => ({
      text,
      rows: end - begin,
      sequence: () => ({ ids: slice(ids, begin, end), from }),
      tokens: range(begin + from, end),
    }));
  }
  const { mask, before, after } = masking;
  const room = roomOf(window, masking);
  return cutWindows(ids.length, room, Math.min(stride, room), 0).flatMap(({ begin, end, from }) =>
    range(0, Math.min(MASK_EVERY, end - begin - from)).map((offset): Reading => {
      const tokens = range(begin + from + offset, end, MASK_EVERY);
      return {
        text,
        rows: end - begin + window - room,
        sequence() {
          const masked = slice(ids, begin, end);
          for (const token of tokens) masked[token - begin] = mask;
          const asks = tokens.map((token) => ({ at: before.length + token - begin, id: ids[token]! }));
          return { ids: [...before, ...masked, ...after], asks };
        },
        tokens,
      };
    }),
  );
}

/**
 * Begins an evaluation of some texts. The windows of all of them go through the model together, as many as there is
 * room for: each layer is read once for all.
 * @throws AmalgamError what {@link checkInput} throws
 */
export function startEvaluation(
  runner: Runner,
  inputs: readonly EvaluateInput[],
  protocol: EvaluateProtocol,
  signal?: AbortSignal,
): Evaluation {
  const { window, stride } = protocol;
  for (const input of inputs) checkInput(runner, input, protocol);
  const readings = inputs.flatMap((input, text) => readingsOf(input, text, protocol));
  // what windows that do not overlap leave out stays NaN; a loss never is
  const losses = inputs.map((input) => new Float64Array(input.ids.length - firstOf(input)).fill(Number.NaN));
  const begun = performance.now();
  const passes = groupedPasses({
    items: readings,
    rowsOf: (reading) => reading.rows,
    mostOf: () => runner.rowsPerPass,
    start: (group) =>
      runner.startPass({
        sequences: group.map((reading) => reading.sequence()),
        output: 'loss',
        ...(signal && { signal }),
      }),
    finish(group, result) {
      for (const [i, { text, tokens }] of group.entries()) {
        const first = firstOf(inputs[text]!);
        for (const [j, token] of tokens.entries()) losses[text]![token - first] = result.losses[i]![j]!;
      }
    },
  });

  return {
    get progress() {
      return passes.progress;
    },
    step: () => passes.step(),
    reports({ perToken = false } = {}) {
      const seconds = (performance.now() - begun) / 1000;
      const known = losses.map((own) => own.filter((loss) => !Number.isNaN(loss)));
      const scored = known.reduce((sum, { length }) => sum + length, 0);
      return known.map((own, text) => {
        const sum = own.reduce((a, b) => a + b, 0);
        const meanNll = sum / own.length;
        const { bos, bytes, masking, ids, leftOut = 0 } = inputs[text]!;
        return {
          perplexity: Math.exp(meanNll),
          meanNll,
          tokens: own.length,
          // bytes of tokens that were left out are not known
          bitsPerByte:
            bytes && own.length === ids.length - firstOf(inputs[text]!) ? sum / Math.LN2 / bytes : null,
          protocol: masking
            ? { window, stride: Math.min(stride, roomOf(window, masking)), bos, masked: MASK_EVERY }
            : { window, stride, bos },
          blocks: lossBlocks(own),
          ...(perToken && { perToken: [...own] }),
          ...(leftOut > 0 && { leftOut }),
          engine: runner.engine.kind,
          adapter: runner.engine.adapter,
          // texts that went together share the time by their length
          seconds: (seconds * own.length) / scored,
          peakBytes: runner.peakBytes,
        };
      });
    },
    close: () => passes.close(),
  };
}

interface EvaluateOptions {
  perToken?: boolean;
  onProgress?: (progress: EvaluateProgress) => void;
  signal?: AbortSignal;
}

/** A whole evaluation. @throws what {@link startEvaluation} and its steps throw, `Canceled` */
export async function evaluate(
  runner: Runner,
  input: EvaluateInput,
  protocol: EvaluateProtocol,
  options: EvaluateOptions = {},
): Promise<EvaluateReport> {
  const [report] = await evaluateTexts(runner, [input], protocol, options);
  return report!;
}

/** The same for several texts, each by itself. @throws as {@link evaluate} */
export async function evaluateTexts(
  runner: Runner,
  inputs: readonly EvaluateInput[],
  protocol: EvaluateProtocol,
  options: EvaluateOptions = {},
): Promise<EvaluateReport[]> {
  const evaluation = startEvaluation(runner, inputs, protocol, options.signal);
  try {
    while (await evaluation.step()) options.onProgress?.(evaluation.progress);
    options.onProgress?.(evaluation.progress);
    return evaluation.reports(options);
  } finally {
    evaluation.close();
  }
}

function slice(ids: ArrayLike<number>, begin: number, end: number): number[] {
  return Array.from({ length: end - begin }, (_, i) => ids[begin + i]!);
}

/** begin, begin + step, … below end. */
function range(begin: number, end: number, step = 1): number[] {
  return Array.from({ length: Math.ceil((end - begin) / step) }, (_, i) => begin + i * step);
}

// The strided protocol: which tokens go through the model together, and which of them are scored.

interface Window {
  /** Tokens [begin, end) of the text, at positions 0 …. */
  begin: number;
  end: number;
  /** Index within the window of the first token that it scores. */
  from: number;
}

/**
 * Windows begin at 0, stride, 2·stride, … and end at most `window` later; the last is the first that reaches the end.
 * Every token but the first is scored once, in the first window that holds it and something before it. Where windows do
 * not overlap (a stride as long as the window) the first token of each has nothing before it and is not scored.
 *
 * @param tokens length of the text, the token in front included
 * @param first the first token that can be scored: 0 where nothing need stand before it
 * @throws AmalgamError `TextEmpty`, `TextTooShort`, `Usage` for a protocol that would leave tokens unscored
 */
export function cutWindows(tokens: number, window: number, stride: number, first: 0 | 1 = 1): Window[] {
  if (!Number.isInteger(window) || !Number.isInteger(stride) || window < 2 || stride < 1 || stride > window) {
    throw new AmalgamError(
      'Usage',
      `A window of ${window} with a stride of ${stride} would leave tokens unscored.`,
      'Choose whole numbers with 1 ≤ stride ≤ window, e.g. 256 and 128.',
    );
  }
  if (tokens === 0) {
    throw new AmalgamError('TextEmpty', 'The text has no tokens.', 'Give it some text.');
  }
  if (tokens === first) {
    throw new AmalgamError(
      'TextTooShort',
      'The text has a single token; the first token is never scored.',
      'Give it a longer text.',
    );
  }
  const windows: Window[] = [];
  for (let begin = 0, scored: number = first; scored < tokens; begin += stride) {
    const end = Math.min(begin + window, tokens);
    const from = Math.max(first, scored - begin);
    if (begin + from < end) windows.push({ begin, end, from });
    scored = end;
  }
  return windows;
}
