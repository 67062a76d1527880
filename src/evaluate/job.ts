import type { EvaluateReport, EvaluateRequest, RunningProgress } from '../reports/evaluate';
import type { GuardedTokenizer } from './foreign-text';
import { DEFAULT_PROTOCOL, type EvaluateInput, evaluate } from './perplexity';
import { openRunningModel, type RunningOptions } from './running-model';

/**
 * Perplexity of a planned model.
 * @throws AmalgamError `TextEmpty`, `TextTooShort`, `TokenOutOfRange`, `NonFinite`, `Cancelled`, and what opening throws
 */
export async function runEvaluation(
  request: EvaluateRequest,
  options: RunningOptions,
): Promise<EvaluateReport> {
  const { window = DEFAULT_PROTOCOL.window, stride = DEFAULT_PROTOCOL.stride, perToken = false } = request;
  const model = await openRunningModel(options);
  try {
    const input =
      'ids' in request.input
        ? { ids: request.input.ids, bos: null }
        : await tokenize(request.input.text, await model.tokenizer());
    const report = await evaluate(
      model.runner,
      input,
      { window, stride },
      {
        perToken,
        signal: options.signal,
        onProgress: ({ tokensDone, tokens, tokensPerSecond, secondsLeft }) =>
          options.onProgress({
            stage: 'running',
            done: tokensDone,
            total: tokens,
            rate: tokensPerSecond,
            secondsLeft,
          } satisfies RunningProgress),
      },
    );
    return { ...report, peakBytes: model.engine.peakBytes };
  } finally {
    model.close();
  }
}

/** The ids of a text, with what its tokenizer puts in front. */
export async function tokenize(text: string, tokenizer: GuardedTokenizer): Promise<EvaluateInput> {
  return {
    ids: [...tokenizer.prefix, ...(await tokenizer.encode(text))],
    bos: tokenizer.prefix[0] ?? null,
    bytes: new TextEncoder().encode(text).length,
  };
}
