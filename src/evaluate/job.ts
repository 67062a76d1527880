import { AmalgamError } from '../errors';
import { type GuardedTokenizer, renderGuarded } from '../foreign/foreign-text';
import type { ChatTemplate } from '../formats/chat-template';
import { isConversations, parseConversations } from '../formats/conversations';
import type { EvaluateReport, EvaluateRequest, RunningProgress } from '../reports/evaluate';
import { defaultsOf } from '../reports/option';
import { evaluateOptions } from './options';
import { type EvaluateInput, evaluate } from './perplexity';
import { openRunningModel, peakOf, type RunningModel, type RunningOptions } from './running-model';

/**
 * Perplexity of a planned model.
 * @throws AmalgamError `TextEmpty`, `TextTooShort`, `TokenOutOfRange`, `NonFinite`, `Canceled`, and what opening throws
 */
export async function runEvaluation(
  request: EvaluateRequest,
  options: RunningOptions,
): Promise<EvaluateReport> {
  const { window, stride, perToken } = { ...defaultsOf(evaluateOptions), ...request };
  const tokens = mostTokens([request.input]);
  const model = await openRunningModel({ ...options, masked: true, tokens });
  try {
    const input = await readInput(request.input, await neededTokenizer([request.input], model), model);
    const report = await evaluate(
      model.runner,
      input,
      { window, stride },
      {
        perToken,
        signal: options.signal,
        onProgress: ({ tokensDone, tokens, tokensPerSecond, secondsLeft }) =>
          options.onProgress({
            phase: 'running',
            done: tokensDone,
            total: tokens,
            rate: tokensPerSecond,
            secondsLeft,
          } satisfies RunningProgress),
      },
    );
    return { ...report, peakBytes: peakOf(model.engines) };
  } finally {
    model.close();
  }
}

/** Tokens that are run for texts at most: a character is one at most, and windows overlap by half by default. */
export function mostTokens(inputs: readonly EvaluateRequest['input'][]): number {
  return 2 * inputs.reduce((sum, input) => sum + ('ids' in input ? input.ids.length : input.text.length), 0);
}

/** The tokenizer that reading the inputs takes: a model that fills in masked tokens needs its mask for ids, too. */
export async function neededTokenizer(
  inputs: readonly EvaluateRequest['input'][],
  { runner, tokenizer }: Pick<RunningModel, 'runner' | 'tokenizer'>,
): Promise<GuardedTokenizer | undefined> {
  const needed = runner.architecture.masked || inputs.some((input) => 'text' in input);
  return needed ? tokenizer() : undefined;
}

/**
 * Token ids of a text for a model, or the ids as given.
 * @throws AmalgamError as {@link tokenize}, and `TokenizerUnsupported` where there is no token for a masked one
 */
export async function readInput(
  input: EvaluateRequest['input'],
  tokenizer: GuardedTokenizer | undefined,
  { runner, chatTemplate }: Pick<RunningModel, 'runner' | 'chatTemplate'>,
): Promise<EvaluateInput> {
  const read: EvaluateInput =
    'ids' in input ? { ids: input.ids, bos: null } : await tokenize(input.text, tokenizer!, chatTemplate);
  if (!runner.architecture.masked) return read;
  const { prefix, suffix, mask } = tokenizer!;
  if (mask === undefined) {
    throw new AmalgamError(
      'TokenizerUnsupported',
      'The model fills in masked words, and its tokenizer has no token for one.',
      'Use the tokenizer files of its base: tokenizer_config.json names the mask_token.',
    );
  }
  // it comes around every window, not before the text
  const ids = read.bos === null ? read.ids : Array.from(read.ids).slice(prefix.length);
  return { ...read, ids, bos: prefix[0] ?? null, masking: { mask, before: prefix, after: suffix } };
}

/**
 * The ids of a text: with what its tokenizer puts in front; of conversations as the model's own chat template writes them,
 * which puts it there itself.
 * @throws AmalgamError `TokenizerUnsupported` for conversations where there is no template, and what rendering throws
 */
export async function tokenize(
  text: string,
  tokenizer: GuardedTokenizer,
  chatTemplate: () => Promise<ChatTemplate | undefined>,
): Promise<EvaluateInput> {
  const bytesOf = (read: string) => new TextEncoder().encode(read).length;
  if (isConversations(text)) {
    const rendered = await renderedText(text, await chatTemplate());
    const ids = await tokenizer.encode(rendered.text);
    return { ids, bos: null, bytes: bytesOf(rendered.text), leftOut: rendered.leftOut };
  }
  return {
    ids: [...tokenizer.prefix, ...(await tokenizer.encode(text))],
    bos: tokenizer.prefix[0] ?? null,
    bytes: bytesOf(text),
  };
}

/**
 * Conversations one after the other, as a template writes them; those that it refuses are left out and counted.
 * @throws as {@link tokenize}
 */
export async function renderedText(
  text: string,
  chat: ChatTemplate | undefined,
  signal?: AbortSignal,
): Promise<{ text: string; leftOut: number }> {
  if (chat) {
    const rendered = await renderGuarded(chat, parseConversations(text), false, signal);
    const kept = rendered.filter((one) => one !== null);
    return { text: kept.join(''), leftOut: rendered.length - kept.length };
  }
  throw new AmalgamError(
    'TokenizerUnsupported',
    'The text is conversations, and the model has no chat template to read them by.',
    'Measure it on plain text, or give a merge a chat_template in its recipe.',
  );
}
