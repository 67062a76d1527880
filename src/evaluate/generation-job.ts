import { AmalgamError } from '../errors';
import { type GuardedStream, type GuardedTokenizer, renderGuarded } from '../foreign/foreign-text';
import type { Message } from '../formats/conversations';
import { openInputs } from '../host/weight-inputs';
import type {
  AnswersRequest,
  EffectsRequest,
  GenerateReport,
  GenerateRequest,
  RunTarget,
  WeightEffect,
  WrittenToken,
} from '../reports/evaluate';
import { runningAt } from '../reports/time-left';
import { generate, WRITING_RESIDENT_BYTES, writingRunner } from './generation';
import type { KeptModel, ReadyRecipe } from './kept-model';
import { openPlannedWeights } from './planned-weights';
import {
  downloadMeter,
  openRunningModel,
  peakOf,
  plannedTokenizer,
  type RunningModel,
  type RunningOptions,
} from './running-model';
import { sequencesAtOnce } from './sampled-texts';

/** How a text takes part in what changes its recipe. */
export interface LiveText {
  kept: KeptModel;
  /** The recipe that the text goes on with, where it is steered to one that can be run. */
  turn(): Promise<(ReadyRecipe & { taken(taken: boolean): void }) | undefined>;
}

interface GenerationOptions extends RunningOptions {
  /** Another model, over the same files that are open, that gives every token its own probability afterwards. */
  against?: Pick<RunningOptions, 'plan' | 'exact'>;
  /** Where the model stays open for the next text, and the recipe may change between two tokens. */
  liveText?: LiveText;
}

/**
 * Continues a prompt; the text goes out with the progress as it comes. Where the device is lost on the way, it goes on from the
 * text on a new one.
 * @throws AmalgamError `TokenizerUnsupported` (no chat template), `TextEmpty`, `ContextTooLong`, `NonFinite`, `Canceled`, and what opening throws
 */
export async function runGeneration(
  request: GenerateRequest,
  { against, liveText, ...options }: GenerationOptions,
): Promise<GenerateReport> {
  const { maxTokens, temperature, topP, seed, weights = 'auto' } = request;
  const runner = writingRunner(weights);
  let ready: ReadyRecipe = options;
  const open = () => {
    const running = { ...options, ...ready, runner };
    return liveText ? liveText.kept.open(running) : openRunningModel(running);
  };
  /** Opens on a new device what is on a lost one, and closes that. @throws any other error */
  const openAgain = async (thrown: unknown, lost?: RunningModel) => {
    if (!(thrown instanceof AmalgamError) || thrown.code !== 'GpuLost') throw thrown;
    liveText?.kept.lose();
    const fresh = await open();
    if (!liveText) lost?.close();
    return fresh;
  };
  let model = await open().catch((thrown: unknown) => openAgain(thrown));
  let stream: GuardedStream | undefined;
  try {
    const tokenizer = await model.tokenizer();
    const prompt = await promptIds(model, tokenizer, request, options.signal);
    const decoder = tokenizer.stream(prompt);
    stream = decoder;
    const begun = performance.now();
    const secondsSince = () => (performance.now() - begun) / 1000;
    let text = '';
    const tokens: WrittenToken[] = [];
    const tell = (done: number, more: string) => {
      text += more;
      options.onProgress({ ...runningAt(done, maxTokens, secondsSince()), text: more });
    };
    const written: number[] = [];
    const turned = (next: ReadyRecipe) => {
      ready = next;
    };
    const write = () =>
      generate(model.runner, [prompt], {
        maxTokens,
        written: [written],
        sampling: { temperature, topP, seed },
        stop: model.ends,
        signal: options.signal,
        ...(liveText && { between: turnBetween(liveText, options, () => tokens.length, turned) }),
        onToken: async ({ index, id, probability }) => {
          written.push(id);
          const more = await decoder.push(id);
          tokens.push({ text: more, probability });
          tell(index + 1, more);
        },
      });
    const [generated] = await write().catch(async (thrown: unknown) => {
      model = await openAgain(thrown, model);
      return write();
    });
    const { ids, ended } = generated!;
    const rest = await decoder.end();
    if (tokens.length > 0) tokens.at(-1)!.text += rest;
    tell(ids.length, rest);
    const seconds = secondsSince();
    const { engine, architecture } = model.runner;
    model.rest();
    if (against && ids.length > 0)
      await addProbabilities(tokens, prompt, ids, architecture.vocab, { ...options, ...against });
    return {
      text,
      promptTokens: prompt.length,
      ids,
      tokens,
      ended,
      tokensPerSecond: seconds > 0 ? ids.length / seconds : 0,
      engine: engine.kind,
      adapter: engine.adapter,
      seconds,
      peakBytes: peakOf(model.engines),
      ...(model.runner.encoded && { eightBits: true as const }),
    };
  } finally {
    stream?.close();
    if (!liveText) model.close();
  }
}

interface AnswersOptions extends Pick<RunningOptions, 'models' | 'signal' | 'onProgress'> {
  plan(target: RunTarget): Promise<ReadyRecipe & Pick<RunningOptions, 'exact'>>;
}

/**
 * Has every model continue all prompts, side by side as they fit.
 * @returns texts without their prompts, by model and prompt
 * @throws AmalgamError as {@link runGeneration}
 */
export async function runAnswers(
  { targets, prompts, engine, ...settings }: AnswersRequest,
  { plan, ...options }: AnswersOptions,
): Promise<string[][]> {
  const { maxTokens, temperature, topP, seed, chat, weights = 'auto' } = settings;
  const { signal, onProgress } = options;
  const total = targets.length * prompts.length * maxTokens;
  const answers: string[][] = [];
  for (const [t, target] of targets.entries()) {
    const ready = await plan(target);
    const runner = writingRunner(weights);
    const model = await openRunningModel({ ...ready, ...options, engine, runner });
    let tokenizer: GuardedTokenizer | undefined;
    try {
      // one thread decodes all
      const { vocab } = model.runner.architecture;
      tokenizer = await plannedTokenizer(ready.plan, options.models, vocab, signal, true);
      const asked: number[][] = [];
      for (const prompt of prompts) asked.push(await promptIds(model, tokenizer, { prompt, chat }, signal));
      const atOnce = sequencesAtOnce(
        model.runner,
        Math.max(...asked.map(({ length }) => length)) + maxTokens,
      );
      const texts: string[] = [];
      const begun = performance.now();
      let done = 0;
      for (let first = 0; first < asked.length; first += atOnce) {
        const batch = asked.slice(first, first + atOnce);
        const written = await generate(model.runner, batch, {
          ...{ maxTokens, sampling: { temperature, topP, seed }, stop: model.ends },
          ...{ firstSequence: first, signal },
          onToken({ sequence }) {
            done++;
            if (sequence !== batch.length - 1) return;
            const all = t * prompts.length * maxTokens + done;
            onProgress(runningAt(all, total, (performance.now() - begun) / 1000, done));
          },
        });
        for (const [i, { ids }] of written.entries()) texts.push(await textOf(tokenizer, batch[i]!, ids));
      }
      answers.push(texts);
    } finally {
      tokenizer?.close();
      model.close();
    }
  }
  return answers;
}

/** The text of ids that are written behind others. */
export async function textOf(
  tokenizer: GuardedTokenizer,
  prompt: readonly number[],
  ids: readonly number[],
): Promise<string> {
  const stream = tokenizer.stream(prompt);
  try {
    let text = '';
    for (const id of ids) text += await stream.push(id);
    return text + (await stream.end());
  } finally {
    stream.close();
  }
}

/** What turns the model between two tokens, and tells how long that took. */
function turnBetween(
  { kept, turn }: LiveText,
  { signal, onProgress }: RunningOptions,
  written: () => number,
  onTurn: (ready: ReadyRecipe) => void,
): () => Promise<void> {
  return async () => {
    const begun = performance.now();
    const ready = await turn();
    if (!ready) return;
    const turned = await kept.turn(ready, signal);
    ready.taken(turned);
    if (turned) onTurn({ plan: ready.plan, ...(ready.prepared && { prepared: ready.prepared }) });
    const turnSeconds = (performance.now() - begun) / 1000;
    const amount = { done: written(), total: written(), rate: 0, secondsLeft: null };
    if (turned) onProgress({ phase: 'running', ...amount, turnSeconds });
  };
}

/**
 * Measures what each weight of a merge does to a text, against the weights of others; nothing is written.
 * @returns effects by other and weight
 * @throws AmalgamError as {@link runGeneration}, and `ArchitectureUnsupported`, `ShapeMismatch` for one of another shape
 */
export async function runEffects(
  { recipe, without, engine, ...request }: EffectsRequest,
  { plan: planOf, ...host }: AnswersOptions,
): Promise<WeightEffect[][]> {
  const options = { ...host, ...(await planOf({ recipe })), engine };
  const others: Awaited<ReturnType<typeof planOf>>[] = [];
  for (const other of without) others.push(await planOf(other));
  const { signal, models, onProgress } = options;
  const model = await openRunningModel({ ...options, runner: { residentBytes: WRITING_RESIDENT_BYTES } });
  try {
    const prompt = await promptIds(model, await model.tokenizer(), request, signal);
    const sequence = { ids: [...prompt, ...request.ids], from: prompt.length };
    const all: WeightEffect[][] = [];
    let done = 0;
    const begun = performance.now();
    for (const { plan, exact, prepared } of others) {
      const effects: WeightEffect[] = [];
      const onEffect = (name: string, effect: number, of: number) => {
        effects.push({ name, effect });
        onProgress(runningAt(++done, of * others.length, (performance.now() - begun) / 1000));
      };
      let weights: Awaited<ReturnType<typeof openPlannedWeights>> | undefined;
      const files = await openInputs(plan, models, signal, downloadMeter(plan.bytesToDownload, onProgress));
      try {
        weights = await openPlannedWeights(plan, model.engines, files.read, exact, prepared);
        await model.runner.weightEffects({ sequence, others: weights, signal, onEffect });
      } finally {
        weights?.close();
        files.close();
      }
      all.push(effects);
    }
    return all;
  } finally {
    model.close();
  }
}

/** Ids of a prompt, what stands in front of it included. */
export async function promptIds(
  model: RunningModel,
  tokenizer: GuardedTokenizer,
  { prompt, chat, messages }: Pick<GenerateRequest, 'prompt' | 'chat' | 'messages'>,
  signal: AbortSignal,
): Promise<number[]> {
  const said = messages ?? (chat ? [{ role: 'user', content: prompt }] : undefined);
  if (said) return tokenizer.encode(await chatPrompt(model, said, signal));
  return [...tokenizer.prefix, ...(await tokenizer.encode(prompt))];
}

/** Has a model of the same vocabulary read the prompt and what was written, and adds the probability of each token. */
async function addProbabilities(
  tokens: WrittenToken[],
  prompt: readonly number[],
  ids: readonly number[],
  vocab: number,
  options: RunningOptions,
): Promise<void> {
  const model = await openRunningModel(options);
  try {
    if (model.runner.architecture.vocab !== vocab) return;
    const { losses } = await model.runner.pass({
      sequences: [{ ids: [...prompt, ...ids], from: prompt.length }],
      output: 'loss',
      signal: options.signal,
    });
    for (const [i, token] of tokens.entries()) token.against = Math.exp(-losses[0]![i]!);
  } finally {
    model.close();
  }
}

/** A conversation rendered with the model's chat template, which itself adds the BOS token, up to where it answers. */
async function chatPrompt(
  model: RunningModel,
  messages: readonly Message[],
  signal: AbortSignal,
): Promise<string> {
  const chat = await model.chatTemplate();
  if (chat) return (await renderGuarded(chat, [[...messages]], true, signal))[0]!;
  throw new AmalgamError(
    'TokenizerUnsupported',
    'The model has no chat template.',
    'Give the beginning of a text instead, for the model to continue.',
  );
}
