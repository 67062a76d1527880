/** Perplexity of a text: how surprised a model is by each token, given those before. */

import { checkSequences } from '../forward/chunk';
import type { Pass } from '../forward/pass';
import type { Runner } from '../forward/runner';
import type { EvaluateReport } from '../reports/evaluate';
import { secondsLeft } from '../reports/time-left';
import { cutWindows, type Window } from './windows';

export interface EvaluateInput {
  /** Token ids, what stands in front of the text included. */
  ids: ArrayLike<number>;
  /** The id in front, where there is one: goes into the report. */
  bos: number | null;
  /** UTF-8 bytes of the text, for bits per byte; absent when only ids are known. */
  bytes?: number;
}

export interface EvaluateProtocol {
  /** Tokens the model sees at once. */
  window: number;
  /** Tokens by which windows advance. */
  stride: number;
}

export const DEFAULT_PROTOCOL: EvaluateProtocol = { window: 256, stride: 128 };

export interface EvaluateProgress {
  /** Tokens gone through the whole model, in whole and parts, of `tokens`. */
  tokensDone: number;
  /** Tokens to run: more than are scored, since windows overlap. */
  tokens: number;
  tokensPerSecond: number;
  secondsLeft: number | null;
}

/** An evaluation in steps, so that several models can take each layer at the same time. */
export interface Evaluation {
  readonly progress: EvaluateProgress;
  /** Does the next step; false when there is none left. @throws what `Pass.step` and `Pass.result` throw */
  step(): Promise<boolean>;
  /** What came of it, text by text, once `step` has said false. */
  reports(options?: { perToken?: boolean }): EvaluateReport[];
  /** Call it however the evaluation ends. */
  close(): void;
}

/**
 * Says beforehand whether a text can be scored.
 * @throws AmalgamError `TextEmpty`, `TextTooShort`, `Usage`, `TokenOutOfRange`, `ContextTooLong`
 */
export function checkInput(
  { architecture }: Runner,
  { ids }: EvaluateInput,
  protocol: EvaluateProtocol,
): void {
  const windows = cutWindows(ids.length, protocol.window, protocol.stride);
  checkSequences(
    windows.map(({ begin, end }) => ({ ids: slice(ids, begin, end) })),
    architecture,
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
  const windows = inputs.flatMap(({ ids }, text) =>
    cutWindows(ids.length, window, stride).map((w) => ({ ...w, text })),
  );
  const groups = groupWindows(windows, runner.rowsPerPass);
  const rows = groups.map((group) => group.reduce((sum, w) => sum + w.end - w.begin, 0));
  const tokens = rows.reduce((a, b) => a + b, 0);
  const losses = inputs.map(({ ids }) => new Float64Array(ids.length - 1));
  const overlap = stride < window;
  const isScored = (text: number, token: number) =>
    overlap || windows.some((w) => w.text === text && w.begin + w.from <= token && token < w.end);
  const begun = performance.now();
  let group = 0;
  let pass: Pass | undefined;

  const start = () =>
    runner.startPass({
      sequences: groups[group]!.map(({ begin, end, from, text }) => ({
        ids: slice(inputs[text]!.ids, begin, end),
        from,
      })),
      output: 'loss',
      ...(signal && { signal }),
    });
  const finish = async (done: Pass) => {
    const result = await done.result();
    for (const [i, { begin, from, text }] of groups[group]!.entries()) {
      // the loss of token t stands at t − 1: the first token has none
      losses[text]!.set(result.losses[i]!, begin + from - 1);
    }
    done.close();
    pass = undefined;
    group++;
  };

  return {
    get progress() {
      const share = pass ? pass.stepsDone / pass.steps : 0;
      const tokensDone = rows.slice(0, group).reduce((a, b) => a + b, 0) + share * (rows[group] ?? 0);
      const seconds = (performance.now() - begun) / 1000;
      const tokensPerSecond = seconds > 0 ? tokensDone / seconds : 0;
      return {
        tokensDone,
        tokens,
        tokensPerSecond,
        secondsLeft: secondsLeft({ left: tokens - tokensDone, perSecond: tokensPerSecond }),
      };
    },
    async step() {
      if (group === groups.length) return false;
      pass ??= start();
      if (!(await pass.step())) await finish(pass);
      return group < groups.length;
    },
    reports({ perToken = false } = {}) {
      const seconds = (performance.now() - begun) / 1000;
      // windows that do not overlap leave their first tokens out
      const known = losses.map((own, text) => own.filter((_, i) => isScored(text, i + 1)));
      const scored = known.reduce((sum, { length }) => sum + length, 0);
      return known.map((own, text) => {
        const sum = own.reduce((a, b) => a + b, 0);
        const meanNll = sum / own.length;
        const { bos, bytes } = inputs[text]!;
        return {
          perplexity: Math.exp(meanNll),
          meanNll,
          tokens: own.length,
          // bytes of tokens that were left out are not known
          bitsPerByte: bytes && own.length === inputs[text]!.ids.length - 1 ? sum / Math.LN2 / bytes : null,
          protocol: { window, stride, bos },
          ...(perToken && { perToken: [...own] }),
          engine: runner.engine.kind,
          adapter: runner.engine.adapter,
          // texts that went together share the time by their length
          seconds: (seconds * own.length) / scored,
          peakBytes: runner.peakBytes,
        };
      });
    },
    close() {
      pass?.close();
    },
  };
}

/** A whole evaluation. @throws what {@link startEvaluation} and its steps throw, `Cancelled` */
export async function evaluate(
  runner: Runner,
  input: EvaluateInput,
  protocol: EvaluateProtocol,
  options: {
    perToken?: boolean;
    onProgress?: (progress: EvaluateProgress) => void;
    signal?: AbortSignal;
  } = {},
): Promise<EvaluateReport> {
  const evaluation = startEvaluation(runner, [input], protocol, options.signal);
  try {
    while (await evaluation.step()) options.onProgress?.(evaluation.progress);
    options.onProgress?.(evaluation.progress);
    return evaluation.reports(options)[0]!;
  } finally {
    evaluation.close();
  }
}

/** Consecutive windows of at most `rows` tokens together, one at least. */
function groupWindows<W extends Window>(windows: readonly W[], rows: number): W[][] {
  const groups: W[][] = [];
  let used = Number.POSITIVE_INFINITY;
  for (const window of windows) {
    const length = window.end - window.begin;
    if (used + length > rows) {
      groups.push([]);
      used = 0;
    }
    groups.at(-1)!.push(window);
    used += length;
  }
  return groups;
}

function slice(ids: ArrayLike<number>, begin: number, end: number): number[] {
  return Array.from({ length: end - begin }, (_, i) => ids[begin + i]!);
}
