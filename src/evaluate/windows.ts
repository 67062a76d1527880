/** The strided protocol: which tokens go through the model together, and which of them are scored. */
import { AmalgamError } from '../errors';

interface Window {
  /** Tokens [begin, end) of the text, at positions 0 …. */
  begin: number;
  end: number;
  /** Index within the window of the first token that it scores. */
  from: number;
}

/**
 * Windows begin at 0, stride, 2·stride, … and end at most `window` later; the last is the first that reaches the end.
 * Every token but the first is scored once, in the first window that holds it and something before it. Where windows do
 * not overlap (a stride as long as the window) the first token of each has nothing before it and is not scored.
 *
 * @param tokens length of the text, the token in front included
 * @param first the first token that can be scored: 0 where nothing need stand before it
 * @throws AmalgamError `TextEmpty`, `TextTooShort`, `Usage` for a protocol that would leave tokens unscored
 */
export function cutWindows(tokens: number, window: number, stride: number, first: 0 | 1 = 1): Window[] {
  if (!Number.isInteger(window) || !Number.isInteger(stride) || window < 2 || stride < 1 || stride > window) {
    throw new AmalgamError(
      'Usage',
      `A window of ${window} with a stride of ${stride} would leave tokens unscored.`,
      'Choose whole numbers with 1 ≤ stride ≤ window, e.g. 256 and 128.',
    );
  }
  if (tokens === 0) {
    throw new AmalgamError('TextEmpty', 'The text has no tokens.', 'Give it some text.');
  }
  if (tokens === first) {
    throw new AmalgamError(
      'TextTooShort',
      'The text has a single token; the first token is never scored.',
      'Give it a longer text.',
    );
  }
  const windows: Window[] = [];
  for (let begin = 0, scored: number = first; scored < tokens; begin += stride) {
    const end = Math.min(begin + window, tokens);
    const from = Math.max(first, scored - begin);
    if (begin + from < end) windows.push({ begin, end, from });
    scored = end;
  }
  return windows;
}
