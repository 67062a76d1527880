/** Perplexity of models and merges, side by side. */
import { AmalgamError, type ErrorReport, errorReport } from '../errors';
import { type GuardedTokenizer, renderGuarded } from '../foreign/foreign-text';
import type { ChatTemplate } from '../formats/chat-template';
import { isConversations, parseConversations } from '../formats/conversations';
import type {
  EvaluatedModel,
  EvaluateManyReport,
  EvaluateManyRequest,
  KeptWeights,
  RunningProgress,
  TextInput,
} from '../reports/evaluate';
import type { LossBlock } from '../reports/paired-error';
import { writingRunner } from './generation';
import type { KeptModel } from './kept-model';
import {
  checkInput,
  DEFAULT_PROTOCOL,
  type EvaluateInput,
  type Evaluation,
  evaluateTexts,
  startEvaluation,
} from './perplexity';
import type { RunningModel, RunningOptions } from './running-model';
import { runSideBySide, type SideBySideOptions, tokenizerKey } from './side-by-side';

interface EvaluateManyOptions extends SideBySideOptions {
  onProgress(progress: RunningProgress): void;
}

/**
 * Evaluates every target on every text. A target that cannot be run, or a text it cannot score, is an error in its
 * place; the others go on.
 * @throws AmalgamError `NoWebGpu`, `Canceled`, `Usage`
 */
export async function runEvaluations(
  request: EvaluateManyRequest,
  options: EvaluateManyOptions,
): Promise<EvaluateManyReport> {
  const { targets, inputs, window, stride, perToken = false } = { ...DEFAULT_PROTOCOL, ...request };
  const protocol = { window, stride };
  if (targets.length === 0 || inputs.length === 0) {
    throw new AmalgamError('Usage', 'There is nothing to measure.', 'Name a model and a text at least.');
  }
  const models = targets.map((): EvaluatedModel => ({ outcomes: [], bytes: null }));
  const encoded = new Map<string, Awaited<ReturnType<typeof encode>>>();
  const report = await runSideBySide<Evaluation & { texts: number[] }>(
    {
      targets,
      engine: request.engine,
      ...(request.weights && { weights: request.weights }),
      masked: true,
      tokens: mostTokens(inputs),
      sequences: inputs.reduce((sum, input) => sum + likelyWindows(input, protocol), 0),
      planned({ index, plan }) {
        models[index]!.bytes = plan.bytesToWrite;
      },
      async begin(entry, model) {
        const key = tokenizerKey(entry);
        const own = encoded.get(key) ?? (await encode(inputs, model));
        encoded.set(key, own);
        const texts: number[] = [];
        for (const [t, input] of own.entries()) {
          if ('error' in input) {
            models[entry.index]!.outcomes[t] = input;
            continue;
          }
          try {
            checkInput(model.runner, input, protocol);
            texts.push(t);
          } catch (thrown) {
            models[entry.index]!.outcomes[t] = { error: errorReport(thrown) };
          }
        }
        if (texts.length === 0) return undefined;
        const chosen = texts.map((t) => own[t] as EvaluateInput);
        const evaluation = startEvaluation(model.runner, chosen, protocol, options.signal);
        return Object.assign(evaluation, { texts });
      },
      end({ index }, evaluation, seconds) {
        const reports = evaluation.reports({ perToken });
        const scored = reports.reduce((sum, r) => sum + r.tokens, 0);
        for (const [i, one] of reports.entries()) {
          const own = { ...one, seconds: (seconds * one.tokens) / scored };
          models[index]!.outcomes[evaluation.texts[i]!] = { report: own };
        }
      },
      fail(index, thrown) {
        models[index]!.outcomes = inputs.map((_, i) => {
          const known = models[index]!.outcomes[i];
          return known && 'error' in known ? known : { error: errorReport(thrown) };
        });
      },
      onProgress(progress, finished) {
        const done = finished.map((index) => ({ index, model: models[index]! }));
        options.onProgress(done.length > 0 ? { ...progress, finished: done } : progress);
      },
    },
    options,
  );
  return { models, ...report };
}

/** Tokens of a text that are read while sliders move. */
const LIVE_TOKENS = 256;

/**
 * Losses of a model that stays open, over the first stretches of a text: whole ones, up to {@link LIVE_TOKENS} tokens.
 * @param signal ends it between two steps; the model stays as it is
 * @throws AmalgamError as `KeptModel.open` and `evaluateTexts`, `TokenizerUnsupported`
 */
export async function runLivePerplexity(
  stretches: readonly TextInput[],
  kept: KeptModel,
  options: Omit<RunningOptions, 'runner' | 'live' | 'masked' | 'tokens'>,
  weights: KeptWeights = 'auto',
): Promise<LossBlock[]> {
  const { signal } = options;
  // what ends it later ends no tokenizer of the next text
  const opening = new AbortController();
  const stop = () => opening.abort();
  signal.addEventListener('abort', stop);
  const model = await kept
    .open({ ...options, signal: opening.signal, runner: writingRunner(weights) })
    .finally(() => signal.removeEventListener('abort', stop));
  const own = await neededTokenizer(stretches, model);
  const tokenizer = own && (await encodedAtOnce(stretches, own));
  const inputs: EvaluateInput[] = [];
  for (let left = LIVE_TOKENS, i = 0; left > 0 && i < stretches.length; i++) {
    const { ids, bos } = await readInput(stretches[i]!, tokenizer, model);
    // the first is not scored
    const read = Array.from(ids).slice(0, left + 1);
    if (read.length > 1) inputs.push({ ids: read, bos });
    left -= read.length - 1;
  }
  const window = LIVE_TOKENS + 1;
  const reports = await evaluateTexts(model.runner, inputs, { window, stride: window }, { signal });
  return reports.flatMap(({ blocks = [] }) => blocks);
}

/** Token ids of every text for one model, or the error that prevents them. */
async function encode(
  inputs: EvaluateManyRequest['inputs'],
  model: RunningModel,
): Promise<(EvaluateInput | { error: ErrorReport })[]> {
  const opened = await neededTokenizer(inputs, model);
  const tokenizer = opened && (await encodedAtOnce(inputs, opened));
  const encoded: (EvaluateInput | { error: ErrorReport })[] = [];
  for (const input of inputs) {
    // a model without a chat template reads the other texts all the same
    const read = readInput(input, tokenizer, model);
    encoded.push(await read.catch((thrown: unknown) => ({ error: errorReport(thrown) })));
  }
  return encoded;
}

/** The tokenizer, with the texts encoded in one go: every call starts a thread. A text that fails does so again in its place. */
async function encodedAtOnce(
  inputs: readonly TextInput[],
  tokenizer: GuardedTokenizer,
): Promise<GuardedTokenizer> {
  const texts = inputs.flatMap((input) =>
    'text' in input && !isConversations(input.text) ? [input.text] : [],
  );
  if (texts.length < 2) return tokenizer;
  const ids = await tokenizer.encodeAll(texts).catch(() => []);
  const known = new Map(ids.map((own, i) => [texts[i]!, own]));
  return { ...tokenizer, encode: async (text) => known.get(text) ?? tokenizer.encode(text) };
}

/** Tokens that are run for texts at most: a character is one at most, and windows overlap by half by default. */
function mostTokens(inputs: readonly TextInput[]): number {
  return 2 * inputs.reduce((sum, input) => sum + ('ids' in input ? input.ids.length : input.text.length), 0);
}

/** Windows of an input; of a text, if three characters make a token. */
function likelyWindows(input: TextInput, { window, stride }: { window: number; stride: number }): number {
  const tokens = 'ids' in input ? input.ids.length : input.text.length / 3;
  return 1 + Math.max(0, Math.ceil((tokens - window) / stride));
}

/** The tokenizer that reading the inputs takes: a model that fills in masked tokens needs its mask for ids, too. */
async function neededTokenizer(
  inputs: readonly TextInput[],
  { runner, tokenizer }: Pick<RunningModel, 'runner' | 'tokenizer'>,
): Promise<GuardedTokenizer | undefined> {
  const needed = runner.architecture.masked || inputs.some((input) => 'text' in input);
  return needed ? tokenizer() : undefined;
}

/**
 * Token ids of a text for a model, or the ids as given.
 * @throws AmalgamError as {@link tokenize}, and `TokenizerUnsupported` where there is no token for a masked one
 */
async function readInput(
  input: TextInput,
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
