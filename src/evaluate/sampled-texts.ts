/** Many sequences sampled from one model: the text that a model writes by itself. */

import { AmalgamError } from '../errors';
import { counted } from '../formats/quantity';
import { sequenceBytes } from '../forward/kv-cache';
import type { Runner } from '../forward/runner';
import { generate } from './generation';

interface GenerateManyOptions {
  /** How many sequences. */
  count: number;
  /** Tokens of every sequence, the prefix included. */
  length: number;
  /** 1 samples what the model itself would write; 0 would make all sequences alike and is refused for more than one. */
  temperature: number;
  /** Default 1. */
  topP?: number;
  seed: number;
  /** Ids every sequence begins with (BOS): one at least. */
  prefix: readonly number[];
  /** Number of the first sequence among all that are drawn with this seed. Default 0. */
  firstSequence?: number;
  /** Sequences at once. Default: as many as fit (see {@link sequencesAtOnce}). */
  atOnce?: number;
  onProgress?: (progress: { tokensDone: number; tokens: number }) => void;
  /** Whether it has taken long enough: sequences then end early, and those of later batches are left out. */
  enough?: () => boolean;
  signal?: AbortSignal;
}

/** Bytes of keys and values, and of logits on the host, that a batch may take. */
const CACHE_BYTES = 512 << 20;
const LOGITS_BYTES = 128 << 20;
/** More sequences in a step gain nothing. */
const MOST = 256;
/** Tokens that a sequence has however long they take. */
const LEAST = 32;

/**
 * Samples `count` sequences of exactly `length` tokens, prefix included. An end token does not end one: as in training
 * on packed text, what follows is the next document. Sequence i draws from the random stream (seed, i) whatever batch it
 * is in, so that nothing but the rounding of logits can depend on how many run at once.
 *
 * @returns ids, [count][length]
 * @throws AmalgamError `Usage` (temperature 0 for several, counts that are no whole numbers), `TextEmpty` (no prefix),
 *   `TokenOutOfRange`, `ContextTooLong` (more than the model's positions), `NonFinite`, `Canceled`
 */
export async function generateMany(runner: Runner, options: GenerateManyOptions): Promise<number[][]> {
  const {
    count,
    length,
    temperature,
    topP = 1,
    seed,
    firstSequence = 0,
    prefix,
    signal,
    onProgress,
    enough,
  } = options;
  check(runner, options);
  const each = length - prefix.length;
  const tokens = count * each;
  const atOnce = evenly(count, Math.max(1, options.atOnce ?? sequencesAtOnce(runner, length)));
  const sequences: number[][] = [];
  let tokensDone = 0;
  for (let first = 0; first < count; first += atOnce) {
    const prompts = Array.from({ length: Math.min(atOnce, count - first) }, () => prefix);
    const written = await generate(runner, prompts, {
      maxTokens: each,
      sampling: { temperature, topP, seed },
      firstSequence: firstSequence + first,
      onToken: ({ sequence }) => {
        tokensDone++;
        if (sequence === prompts.length - 1) onProgress?.({ tokensDone, tokens });
      },
      ...(enough && { enough: (written: number) => written >= LEAST && enough() }),
      ...(signal && { signal }),
    });
    for (const { ids } of written) sequences.push([...prefix, ...ids]);
    if (written[0]!.ids.length < each) break;
  }
  return sequences;
}

/** Sequences of `length` tokens whose keys and values fit into 512 MiB and the engine's buffers, 256 at most. */
export function sequencesAtOnce({ architecture, engine }: Runner, length: number): number {
  const { all, largest } = sequenceBytes(architecture, length);
  const fitting = Math.min(
    CACHE_BYTES / all,
    engine.maxBufferBytes / largest,
    LOGITS_BYTES / (4 * architecture.vocab),
  );
  return Math.max(1, Math.min(MOST, Math.floor(fitting)));
}

/** The size of the fewest batches of at most `most`, all about the same. */
function evenly(count: number, most: number): number {
  return Math.max(1, Math.ceil(count / Math.max(1, Math.ceil(count / most))));
}

function check(runner: Runner, { count, length, temperature, prefix }: GenerateManyOptions): void {
  const refuse = (message: string, hint: string) => {
    throw new AmalgamError('Usage', message, hint);
  };
  if (!Number.isInteger(count) || count < 1 || !Number.isInteger(length)) {
    refuse(
      `${counted(count, 'sequence')} of ${counted(length, 'token')} cannot be written.`,
      'Choose whole numbers from 1.',
    );
  }
  if (count > 1 && temperature === 0) {
    refuse(
      `At temperature 0 all ${counted(count, 'sequence')} would be the same.`,
      'Choose a temperature of 1, or one sequence.',
    );
  }
  if (prefix.length === 0) {
    throw new AmalgamError(
      'TextEmpty',
      'The sequences have nothing to begin with.',
      'Begin them with the BOS token of the tokenizer, or its end-of-text token.',
    );
  }
  if (length <= prefix.length) {
    refuse(
      `A sequence of ${counted(length, 'token')} is no longer than what it begins with.`,
      'Ask for longer ones.',
    );
  }
  const { maxPositions } = runner.architecture;
  if (maxPositions !== undefined && length > maxPositions) {
    throw new AmalgamError(
      'ContextTooLong',
      `Sequences of ${counted(length, 'token')} exceed the ${maxPositions} positions of the model.`,
      'Ask for shorter ones.',
    );
  }
}
