/** Generation: token after token, with the keys and values of earlier ones kept. */

import { probabilityOf, randomOf, type Sampling, type Scores, sample } from '../backend/sampler';
import { AmalgamError } from '../errors';
import { isJsonNumber, type JsonObject, type JsonValue } from '../formats/strict-json';
import type { Drawn } from '../forward/head';
import type { KvCache } from '../forward/kv-cache';
import type { Runner, RunnerOptions } from '../forward/runner';
import type { KeptWeights } from '../reports/evaluate';
import { isInRange } from '../reports/option';
import { generateOptions } from './options';

/**
 * `RunnerOptions.residentBytes` of a runner that writes: every token takes all layers, so those that fit into this stay on the
 * device between tokens. Reading and uploading them anew would take as long as reading the model, for each token.
 */
export const WRITING_RESIDENT_BYTES = 2 ** 30;

/** Options of a runner that writes. */
export function writingRunner(weights: KeptWeights = 'auto'): RunnerOptions {
  return { residentBytes: WRITING_RESIDENT_BYTES, weights };
}

interface SeededSampling extends Sampling {
  seed: number;
}

export const GREEDY: SeededSampling = { temperature: 0, topP: 1, seed: 0 };

interface GenerateOptions {
  /** Tokens to generate at most, for each prompt. */
  maxTokens: number;
  sampling: SeededSampling;
  /** Ids that end a sequence; they are not part of it. */
  stop?: readonly number[];
  /** Ids of each prompt's text that are written already: it goes on behind them. */
  written?: readonly (readonly number[])[];
  /** Number of the first prompt among all that are drawn with this seed: its random stream. Default 0. */
  firstSequence?: number;
  /** Called for every token as it is chosen; where it answers `end`, the sequence ends with it. */
  onToken?: (token: GeneratedToken) => unknown;
  /** Awaited before every step but the first: the weights may change there. */
  between?: () => Promise<void>;
  /** Asked after every step: whether all sequences end with these many tokens. */
  enough?: (tokens: number) => boolean;
  signal?: AbortSignal;
}

export interface GeneratedToken {
  /** Index of the prompt. */
  sequence: number;
  /** Index among the generated tokens. */
  index: number;
  id: number;
  /** At temperature 1, among all tokens. */
  probability: number;
}

interface Generated {
  /** Ids generated, without the prompt. */
  ids: number[];
  /** `stop`: a stop token came. `length`: `maxTokens`, or the positions of the model, were used up. */
  ended: 'stop' | 'length';
}

/**
 * Continues every prompt, all of them together: a step runs one new token of each sequence through the model.
 *
 * @param prompts token ids, what stands in front of the text included
 * @throws AmalgamError `TextEmpty`, `TokenOutOfRange`, `ContextTooLong`, `NonFinite`, `Canceled`, `Usage`
 */
export async function generate(
  runner: Runner,
  prompts: readonly (readonly number[])[],
  options: GenerateOptions,
): Promise<Generated[]> {
  const { maxTokens, sampling, firstSequence = 0, signal } = options;
  const { temperature, topP } = generateOptions;
  if (!isInRange(temperature, sampling.temperature) || !isInRange(topP, sampling.topP)) {
    throw new AmalgamError(
      'Usage',
      `A temperature of ${sampling.temperature} with top-p ${sampling.topP} cannot be sampled.`,
      'Choose a temperature from 0 and a top-p above 0 and up to 1.',
    );
  }
  const sequences = prompts.map((prompt, slot) => {
    const generated = [...(options.written?.[slot] ?? [])];
    return {
      slot,
      generated,
      ended: undefined as Generated['ended'] | undefined,
      /** Token ids of the next step. */
      next: [...prompt, ...generated],
      start: 0,
    };
  });
  if (maxTokens < 1 || sequences.length === 0) return sequences.map(() => ({ ids: [], ended: 'length' }));
  const longest = Math.max(...prompts.map((prompt) => prompt.length));
  const limit = runner.architecture.maxPositions ?? Number.POSITIVE_INFINITY;
  // the last token generated is never run
  const capacity = Math.max(longest, Math.min(longest + maxTokens - 1, limit));
  const stops = new Set(options.stop ?? []);
  const cache = runner.openCache(prompts.length, capacity);
  try {
    for (let open = sequences; open.length > 0; open = open.filter((s) => s.ended === undefined)) {
      const first = open[0]!.start === 0;
      if (!first) await options.between?.();
      const drawing = { ...sampling, cache, firstSequence, ...(signal && { signal }) };
      const drawn = await (first ? begin : step)(runner, open, drawing);
      for (const [i, sequence] of open.entries()) {
        const index = sequence.generated.length;
        const { id, probability } = drawn[i]!;
        sequence.start += sequence.next.length;
        sequence.next = [id];
        if (stops.has(id)) {
          sequence.ended = 'stop';
          continue;
        }
        sequence.generated.push(id);
        const said = await options.onToken?.({ sequence: sequence.slot, index, id, probability });
        if (said === 'end') sequence.ended = 'stop';
        else if (index + 1 === maxTokens || sequence.start === capacity) sequence.ended = 'length';
      }
      if (options.enough?.(open[0]!.generated.length)) for (const one of open) one.ended ??= 'length';
    }
  } finally {
    cache.close();
  }
  return sequences.map(({ generated, ended }) => ({ ids: generated, ended: ended! }));
}

interface OpenSequence {
  next: readonly number[];
  generated: readonly number[];
  start: number;
  slot: number;
}

interface Drawing extends SeededSampling {
  cache: KvCache;
  firstSequence: number;
  signal?: AbortSignal;
}

/** The first step: equal prompts are run once, and their state is copied. */
async function begin(runner: Runner, open: readonly OpenSequence[], drawing: Drawing): Promise<Drawn[]> {
  const alike = new Map<string, OpenSequence[]>();
  for (const sequence of open) {
    const key = sequence.next.join();
    alike.set(key, [...(alike.get(key) ?? []), sequence]);
  }
  const leaders = [...alike.values()].map((sequences) => sequences[0]!);
  if (leaders.length === open.length) return step(runner, open, drawing);
  const scores = await score(runner, leaders, drawing);
  const bySlot = new Map<number, Scores>();
  for (const [i, [leader, ...others]] of [...alike.values()].entries()) {
    const slots = others.map((other) => other.slot);
    if (slots.length > 0) await drawing.cache.copy(leader!.slot, slots, leader!.next.length);
    for (const slot of [leader!.slot, ...slots]) bySlot.set(slot, scores[i]!);
  }
  return open.map((sequence) => drawFrom(bySlot.get(sequence.slot)!, sequence, drawing));
}

/** Runs what is next of every sequence; the token behind each one's last, drawn on the device where it can be. */
async function step(runner: Runner, open: readonly OpenSequence[], drawing: Drawing): Promise<Drawn[]> {
  if (open.length > runner.mostDraws) {
    const scores = await score(runner, open, drawing);
    return open.map((sequence, i) => drawFrom(scores[i]!, sequence, drawing));
  }
  const { temperature, topP } = drawing;
  const randoms = open.map((sequence) => randomFor(sequence, drawing));
  const { drawn } = await runner.pass({
    ...nextOf(open, drawing),
    output: 'draw',
    draws: { temperature, topP, randoms },
  });
  return drawn.map((one, i) => ('logits' in one ? drawFrom(one, open[i]!, drawing) : one));
}

/** Runs what is next of every sequence; the scores behind each one's last token. */
async function score(runner: Runner, open: readonly OpenSequence[], drawing: Drawing): Promise<Scores[]> {
  const { logits, sums } = await runner.pass({ ...nextOf(open, drawing), output: 'logits' });
  return open.map((_, i) => ({ logits: logits[i]!, sums: sums[i]![0]! }));
}

function nextOf(open: readonly OpenSequence[], { cache, signal }: Drawing) {
  const sequences = open.map(({ next, start, slot }) => ({ ids: next, start, slot, from: next.length - 1 }));
  return { sequences, cache, ...(signal && { signal }) };
}

function drawFrom(scores: Scores, sequence: OpenSequence, drawing: Drawing): Drawn {
  const id = sample(scores, drawing, randomFor(sequence, drawing));
  return { id, probability: probabilityOf(scores, id) };
}

function randomFor({ slot, generated }: OpenSequence, { seed, firstSequence }: Drawing) {
  return randomOf(seed, firstSequence + slot, generated.length);
}

/**
 * Ids that end a text: `eos_token_id` of generation_config.json, else of config.json; a number or a list of them.
 * @param configs parsed files, the one that wins first
 */
export function endTokens(...configs: readonly (JsonObject | undefined)[]): number[] {
  for (const config of configs) {
    const value = config?.get('eos_token_id') ?? undefined;
    if (value !== undefined) return (Array.isArray(value) ? value : [value]).flatMap(idOf);
  }
  return [];
}

function idOf(value: JsonValue): number[] {
  return isJsonNumber(value) && Number.isInteger(Number(value.text)) ? [Number(value.text)] : [];
}
