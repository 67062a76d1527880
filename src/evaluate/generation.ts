/** Generation: token after token, with the keys and values of earlier ones kept. */

import { AmalgamError } from '../errors';
import { isJsonNumber, type JsonObject, type JsonValue } from '../formats/strict-json';
import type { KvCache } from '../forward/kv-cache';
import type { Runner } from '../forward/runner';
import { isInRange } from '../reports/option';
import { generateOptions } from './options';
import { type Sampling, type Scores, sample } from './sampler';

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
  /** Number of the first prompt among all that are drawn with this seed: its random stream. Default 0. */
  firstSequence?: number;
  /** Called for every token as it is chosen. */
  onToken?: (token: GeneratedToken) => unknown;
  signal?: AbortSignal;
}

export interface GeneratedToken {
  /** Index of the prompt. */
  sequence: number;
  /** Index among the generated tokens. */
  index: number;
  id: number;
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
  const sequences = prompts.map((prompt, slot) => ({
    slot,
    generated: [] as number[],
    ended: undefined as Generated['ended'] | undefined,
    /** Token ids of the next step. */
    next: [...prompt],
    start: 0,
  }));
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
        await options.onToken?.({ sequence: sequence.slot, index, id });
        if (index + 1 === maxTokens || sequence.start === capacity) sequence.ended = 'length';
      }
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
