/** Generation: token after token, with the keys and values of earlier ones kept. */

import { philox } from '../backend/philox';
import { AmalgamError } from '../errors';
import { isJsonNumber, type JsonObject, type JsonValue } from '../formats/strict-json';
import type { LogitSums } from '../forward/head';
import type { KvCache } from '../forward/kv-cache';
import type { Runner } from '../forward/runner';
import { argmax } from '../linalg/numbers';
import { isInRange } from '../reports/option';
import { generateOptions } from './options';

/**
 * `RunnerOptions.residentBytes` of a runner that writes: every token takes all layers, so those that fit into this stay on the
 * device between tokens. Reading and uploading them anew would take as long as reading the model, for each token.
 */
export const WRITING_RESIDENT_BYTES = 2 ** 30;

interface GenerateOptions {
  /** Tokens to generate at most, for each prompt. */
  maxTokens: number;
  sampling: Sampling;
  /** Ids that end a sequence; they are not part of it. */
  stop?: readonly number[];
  /** Ids of each prompt's text that are written already: it goes on behind them. */
  written?: readonly (readonly number[])[];
  /** Number of the first prompt among all that are drawn with this seed: its random stream. Default 0. */
  firstSequence?: number;
  /** Called for every token as it is chosen. */
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
  const { maxTokens, sampling, firstSequence = 0 } = options;
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
      const scores = await (first ? begin : step)(runner, open, cache, options.signal);
      for (const [i, sequence] of open.entries()) {
        const index = sequence.generated.length;
        const id = sample(scores[i]!, sampling, firstSequence + sequence.slot, index);
        sequence.start += sequence.next.length;
        sequence.next = [id];
        if (stops.has(id)) {
          sequence.ended = 'stop';
          continue;
        }
        sequence.generated.push(id);
        const probability = probabilityOf(scores[i]!, id);
        await options.onToken?.({ sequence: sequence.slot, index, id, probability });
        if (index + 1 === maxTokens || sequence.start === capacity) sequence.ended = 'length';
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
  start: number;
  slot: number;
}

/** The first step: equal prompts are run once, and their state is copied. */
async function begin(
  runner: Runner,
  open: readonly OpenSequence[],
  cache: KvCache,
  signal?: AbortSignal,
): Promise<Scores[]> {
  const alike = new Map<string, OpenSequence[]>();
  for (const sequence of open) {
    const key = sequence.next.join();
    alike.set(key, [...(alike.get(key) ?? []), sequence]);
  }
  const leaders = [...alike.values()].map((sequences) => sequences[0]!);
  const scores = await step(runner, leaders, cache, signal);
  const bySlot = new Map<number, Scores>();
  for (const [i, [leader, ...others]] of [...alike.values()].entries()) {
    const slots = others.map((other) => other.slot);
    if (slots.length > 0) await cache.copy(leader!.slot, slots, leader!.next.length);
    for (const slot of [leader!.slot, ...slots]) bySlot.set(slot, scores[i]!);
  }
  return open.map(({ slot }) => bySlot.get(slot)!);
}

/** Runs what is next of every sequence; the scores behind each one's last token. */
async function step(
  runner: Runner,
  open: readonly OpenSequence[],
  cache: KvCache,
  signal?: AbortSignal,
): Promise<Scores[]> {
  const { logits, sums } = await runner.pass({
    sequences: open.map(({ next, start, slot }) => ({ ids: next, start, slot, from: next.length - 1 })),
    output: 'logits',
    cache,
    ...(signal && { signal }),
  });
  return open.map((_, i) => ({ logits: logits[i]!, sums: sums[i]![0]! }));
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

// Choosing the next token from its logits.

interface Sampling {
  /** 0 takes the most probable token always. */
  temperature: number;
  /** Only the smallest set of most probable tokens whose probabilities reach this sum; 1 is all. */
  topP: number;
  seed: number;
}

export const GREEDY: Sampling = { temperature: 0, topP: 1, seed: 0 };

/** Logits of one row, [vocab], and their sums. */
interface Scores {
  logits: Float32Array;
  sums: LogitSums;
}

/**
 * The next token. The random number depends on the seed, the sequence and the step alone, so a batch draws what each of
 * its sequences would draw by itself.
 */
export function sample(scores: Scores, sampling: Sampling, sequence: number, step: number): number {
  const { temperature, topP, seed } = sampling;
  if (temperature === 0) return argmax(scores.logits);
  const u = uniform(seed, sequence, step);
  return temperature === 1 && topP === 1 ? drawOfAll(scores, u) : draw(scores.logits, sampling, u);
}

/** Probability of a token: e^(x − largest) / Σ e^(x − largest), the sums of all segments taken to one largest. */
function probabilityOf({ logits, sums: { begins, values } }: Scores, id: number): number {
  let top = Number.NEGATIVE_INFINITY;
  for (let s = 0; s < begins.length; s++) top = Math.max(top, values[2 * s]!);
  let total = 0;
  for (let s = 0; s < begins.length; s++) total += values[2 * s + 1]! * Math.exp(values[2 * s]! - top);
  return Math.exp(logits[id]! - top) / total;
}

/** A number in [0, 1) with 53 random bits. */
function uniform(seed: number, sequence: number, step: number): number {
  const words = new Uint32Array(4);
  philox(step, 0, seed >>> 0, sequence, words);
  return (words[0]! * 2 ** 21 + (words[1]! >>> 11)) / 2 ** 53;
}

/** By the sums of segments, so that exponentials of one segment are all that is computed here. */
function drawOfAll({ logits, sums: { begins, values } }: Scores, u: number): number {
  let top = Number.NEGATIVE_INFINITY;
  for (let s = 0; s < begins.length; s++) top = Math.max(top, values[2 * s]!);
  const weightOf = (s: number) => values[2 * s + 1]! * Math.exp(values[2 * s]! - top);
  let left = 0;
  let last = 0;
  for (let s = 0; s < begins.length; s++) {
    left += weightOf(s);
    if (weightOf(s) > 0) last = s;
  }
  left *= u;
  let segment = 0;
  while (segment < last && left >= weightOf(segment)) left -= weightOf(segment++);
  const end = begins[segment + 1] ?? logits.length;
  let drawn = begins[segment]!;
  for (let i = drawn; i < end; i++) {
    const weight = Math.exp(logits[i]! - top);
    if (weight > 0) drawn = i;
    if (left < weight) break;
    left -= weight;
  }
  return drawn;
}

function draw(logits: Float32Array, { temperature, topP }: Sampling, u: number): number {
  const top = logits[argmax(logits)]!;
  const weights = new Float64Array(logits.length);
  let total = 0;
  for (let i = 0; i < weights.length; i++) {
    weights[i] = Math.exp((logits[i]! - top) / temperature);
    total += weights[i]!;
  }
  // those below together weigh less than what topP leaves out, so the wanted set lies above
  const least = ((1 - topP) * total) / weights.length;
  const candidates: number[] = [];
  for (let i = 0; i < weights.length; i++) if (weights[i]! > 0 && weights[i]! >= least) candidates.push(i);
  if (topP === 1) return pick(candidates, weights, u * total);
  candidates.sort((a, b) => weights[b]! - weights[a]! || a - b);
  let mass = 0;
  let count = 0;
  while (count < candidates.length && mass < topP * total) mass += weights[candidates[count++]!]!;
  return pick(candidates.slice(0, Math.max(1, count)), weights, u * mass);
}

/** The candidate at which the running sum of weights passes `at`. */
function pick(candidates: readonly number[], weights: Float64Array, at: number): number {
  let sum = 0;
  for (const i of candidates) {
    sum += weights[i]!;
    if (at < sum) return i;
  }
  return candidates.at(-1)!;
}
