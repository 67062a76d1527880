/** What a model reads while its inputs are measured: text of its own making, or a text it is given. */
import { AmalgamError } from '../errors';
import { generateMany } from '../evaluate/sampled-texts';
import type { Runner } from '../forward/runner';
import { beginSha256 } from '../sources/sha256';

/** The word for text that the model writes itself. */
export const SELF = 'self';
/** Tokens per input of the widest layer below which a warning is due: 12 cost 1.3 % on the models measured. */
export const TOKENS_PER_INPUT = 12;
/** The last tenth of what is given is kept for choosing λ. */
const HELD_OUT = 0.1;

export interface CalibrationSize {
  windows: number;
  /** Tokens of a window. */
  length: number;
}

/** What a model reads, as far as it is known before anything is run. */
export type CalibrationSource =
  | { kind: 'self'; seed: number }
  /** `rendered`: by a chat template, which has written what stands in front. */
  | { kind: 'text'; name: string; text: string; rendered?: true }
  /** Token ids, with nothing put in front of them. All are read, unless some are to be held out for choosing λ. */
  | { kind: 'tokens'; name: string; ids: readonly number[]; heldOut: boolean };

/** A model that can write and read. */
export interface Reader {
  runner: Runner;
  /** Ids every text begins with. @throws AmalgamError what reading the tokenizer throws */
  prefix(): Promise<readonly number[]>;
  /** Ids of a text, without the prefix. */
  encode(text: string): Promise<readonly number[]>;
}

/** sha256 of everything that determines what is read, the model apart. */
export async function calibrationHash(source: CalibrationSource, size: CalibrationSize): Promise<string> {
  const hash = await beginSha256();
  hash.update(
    new TextEncoder().encode(JSON.stringify([1, size.windows, size.length, ...determining(source)])),
  );
  return hash.digest();
}

function determining(source: CalibrationSource): unknown[] {
  if (source.kind === 'self') return ['self', source.seed];
  if (source.kind === 'text') return [source.rendered ? 'rendered' : 'text', source.text];
  return ['tokens', source.heldOut, source.ids];
}

/** In words, for reports and titles. */
export function calibrationTitle(source: CalibrationSource, { windows, length }: CalibrationSize): string {
  const what = source.kind === 'self' ? `text it wrote itself (seed ${source.seed})` : source.name;
  return `${what}, ${windows} × ${length} tokens`;
}

/** Windows of each contributor that a λ is measured on: 32 were as good as 60 kB of held-out text. */
const MOST_HELD_OUT = 32;
const LEAST_HELD_OUT = 8;

/** The windows that λ is measured on: a quarter as many, of the same length. */
export function heldOutSize({ windows, length }: CalibrationSize): CalibrationSize {
  const quarter = Math.ceil(windows / 4);
  return { windows: Math.min(MOST_HELD_OUT, Math.max(LEAST_HELD_OUT, quarter)), length };
}

interface ReadingOptions {
  /** `calibration`, `held-out` for choosing λ: other text of the same kind, or `both`, one after the other. */
  use: 'calibration' | 'held-out' | 'both';
  signal?: AbortSignal;
  /** Tokens written so far, of all that are to be written; not called for a text that is given. */
  onProgress?(tokensDone: number, tokens: number): void;
}

/**
 * The sequences a model reads, each of `size.length` tokens: packed, nothing filled up. What it writes itself is the same
 * whether it writes for both uses at once or one after the other, but for the rounding of logits.
 *
 * @param size of the calibration; the held-out text is of {@link heldOutSize}
 * @throws AmalgamError `TextTooShort`, `ContextTooLong`, `TextEmpty` and whatever running the model throws
 */
export async function readingOf(
  source: CalibrationSource,
  size: CalibrationSize,
  reader: Reader,
  { use, signal, onProgress }: ReadingOptions,
): Promise<number[][]> {
  requirePositions(reader.runner, size.length);
  const heldOut = heldOutSize(size);
  if (source.kind !== 'self') {
    const ids =
      source.kind === 'tokens'
        ? source.ids
        : [...(source.rendered ? [] : await reader.prefix()), ...(await reader.encode(source.text))];
    const all = source.kind === 'tokens' && !source.heldOut;
    const cut = all ? ids.length : Math.floor(ids.length * (1 - HELD_OUT));
    return [
      ...(use === 'held-out' ? [] : cutWindows(ids.slice(0, cut), size, source.name)),
      ...(use === 'calibration' ? [] : cutWindows(ids.slice(cut), heldOut, source.name)),
    ];
  }
  return generateMany(reader.runner, {
    count: { calibration: size.windows, 'held-out': heldOut.windows, both: size.windows + heldOut.windows }[
      use
    ],
    firstSequence: use === 'held-out' ? size.windows : 0,
    length: size.length,
    temperature: 1,
    seed: source.seed,
    prefix: await reader.prefix(),
    ...(signal && { signal }),
    ...(onProgress && {
      onProgress: (progress: { tokensDone: number; tokens: number }) =>
        onProgress(progress.tokensDone, progress.tokens),
    }),
  });
}

/**
 * Windows at even distances over a text; in a text shorter than all of them together they overlap.
 * @throws AmalgamError `TextTooShort` for a text shorter than one window, or with fewer places than windows
 */
export function cutWindows(ids: readonly number[], size: CalibrationSize, name: string): number[][] {
  const { windows, length } = size;
  const places = ids.length - length + 1;
  if (places < windows) {
    throw new AmalgamError(
      'TextTooShort',
      `${name} has ${ids.length} tokens to read, too few for ${windows} windows of ${length}.`,
      'Give a longer text, fewer or shorter windows, or let the model write its own (calibration: self).',
    );
  }
  return Array.from({ length: windows }, (_, i) => {
    const begin = windows === 1 ? 0 : Math.round((i * (places - 1)) / (windows - 1));
    return ids.slice(begin, begin + length);
  });
}

function requirePositions({ architecture }: Runner, length: number): void {
  const { maxPositions } = architecture;
  if (maxPositions === undefined || length <= maxPositions) return;
  throw new AmalgamError(
    'ContextTooLong',
    `Windows of ${length} tokens exceed the ${maxPositions} positions of the model.`,
    'Set a smaller calibration_window.',
  );
}
