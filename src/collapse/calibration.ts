/** The tokens a model is looked at with. */

import { AmalgamError } from '../errors';
import type { Sequence } from '../forward/chunk';
import type { CalibrationInfo } from '../reports/collapse';
import { isInRange } from '../reports/option';
import { calibrationOptions } from './options';

/** Fewer tokens than this say nothing about a model. */
const LEAST_TOKENS = 8;

/**
 * Cuts every text into windows of at most `window` tokens that do not overlap; positions restart in each.
 *
 * @param texts token ids of each text, what stands in front included
 * @throws AmalgamError `Usage` for a window that cannot be meant, `TextEmpty`, `TextTooShort`
 */
export function cutTexts(texts: readonly (readonly number[])[], window: number): Sequence[] {
  if (!isInRange(calibrationOptions.window, window)) {
    throw new AmalgamError('Usage', `A window of ${window} tokens is not valid.`, 'Give 2 or more.');
  }
  const empty = texts.findIndex((ids) => ids.length === 0);
  if (texts.length === 0 || empty >= 0) {
    throw new AmalgamError(
      'TextEmpty',
      texts.length === 0 ? 'There is no calibration text.' : `Calibration text ${empty + 1} has no tokens.`,
      'Give texts of the kind the model is for; a page is enough.',
    );
  }
  const tokens = texts.reduce((sum, ids) => sum + ids.length, 0);
  if (tokens < LEAST_TOKENS) {
    throw new AmalgamError(
      'TextTooShort',
      `The calibration text has ${tokens} tokens; ${LEAST_TOKENS} is the least, and a few hundred make sense.`,
      'Give a longer text, or several.',
    );
  }
  return texts.flatMap((ids) =>
    Array.from({ length: Math.ceil(ids.length / window) }, (_, i) => ({
      ids: ids.slice(i * window, (i + 1) * window),
    })),
  );
}

export function calibrationInfo(sequences: readonly Sequence[], window: number): CalibrationInfo {
  return {
    sequences: sequences.length,
    tokens: sequences.reduce((sum, { ids }) => sum + ids.length, 0),
    window,
  };
}

/** Consecutive sequences of at most `rows` tokens together, one at least. */
export function groupSequences(sequences: readonly Sequence[], rows: number): Sequence[][] {
  const groups: Sequence[][] = [];
  let used = Number.POSITIVE_INFINITY;
  for (const sequence of sequences) {
    const { length } = sequence.ids;
    if (used + length > rows) {
      groups.push([]);
      used = 0;
    }
    groups.at(-1)!.push(sequence);
    used += length;
  }
  return groups;
}
