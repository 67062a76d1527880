/** A text cut into the part that settings are tuned on, the one that merges are compared on, and the one that is reported. Pure. */
import { AmalgamError } from '../errors';
import { isConversations } from '../formats/conversations';
import type { TextInput } from './evaluate';
import { TEXT_PARTS, type TextPart } from './find-best';

/** By part: text by text, the stretches that are read each for itself. */
export type TextParts = Record<TextPart, TextInput[][]>;

/** Stretches of every text dealt out in turn, so that the parts are alike. */
export function inParts(texts: readonly (readonly TextInput[])[]): TextParts {
  const part = (at: number) =>
    texts.map((stretches) => stretches.filter((_, i) => i % TEXT_PARTS.length === at));
  return { tuning: part(0), choosing: part(1), reporting: part(2) };
}

/** Most stretches of a text in a part, and how long they are, in characters and in tokens. */
const MOST = 16;
const CHARACTERS = { least: 200, most: 1000 };
const TOKENS = { least: 32, most: 256 };

/**
 * Stretches of a text, at even distances where it is long; none of them ends within a word or a conversation.
 * @throws AmalgamError `TextTooShort`
 */
export function stretchesOf(input: TextInput, name: string): TextInput[] {
  const within = ({ least, most }: typeof TOKENS, length: number) =>
    Math.min(most, Math.max(least, Math.ceil(length / (MOST * TEXT_PARTS.length))));
  const cut = (): TextInput[] => {
    if ('ids' in input) {
      const size = within(TOKENS, input.ids.length);
      const count = Math.floor(input.ids.length / size);
      return Array.from({ length: count }, (_, i) => ({ ids: input.ids.slice(i * size, (i + 1) * size) }));
    }
    const size = within(CHARACTERS, input.text.length);
    if (!isConversations(input.text)) {
      const pieces = input.text.match(new RegExp(`\\S[^]{0,${size}}(?=\\s|$)|\\S[^]{0,${size}}`, 'gu')) ?? [];
      return pieces.filter(({ length }) => length > CHARACTERS.least / 4).map((text) => ({ text }));
    }
    return input.text.split('\n').flatMap((text) => (text.trim() === '' ? [] : [{ text }]));
  };
  const all = cut();
  const count = Math.min(all.length, MOST * TEXT_PARTS.length);
  if (count < TEXT_PARTS.length) {
    throw new AmalgamError(
      'TextTooShort',
      `${name} is too short to be tuned on, compared on and reported of.`,
      'Give a text of a thousand characters or more, or none: the contributors then generate their own.',
    );
  }
  return Array.from({ length: count }, (_, i) => all[Math.round((i * (all.length - 1)) / (count - 1))]!);
}

/** The parts of a text; each is all of one that is too short to be cut. */
export function partsOf(text: string, name: string): TextParts {
  try {
    return inParts([stretchesOf({ text }, name)]);
  } catch (thrown) {
    if (!(thrown instanceof AmalgamError) || thrown.code !== 'TextTooShort') throw thrown;
    const whole = [[{ text }]];
    return { tuning: whole, choosing: whole, reporting: whole };
  }
}

/** Characters of a text that `quick` scores: about 500 tokens of English, seconds on any engine. */
export const QUICK_CHARACTERS = 1500;

/**
 * The scored part of a text: all of it, or the beginning up to the last whole word (of conversations, the last whole one).
 */
export function scoredText(text: string, amount: 'quick' | 'full', most = QUICK_CHARACTERS): string {
  if (amount === 'full' || text.length <= most) return text;
  if (isConversations(text)) {
    const end = text.lastIndexOf('\n', most);
    return end > 0 ? text.slice(0, end) : (text.split('\n', 1)[0] ?? text);
  }
  const beginning = text.slice(0, most + 1);
  const space = beginning.search(/\s\S*$/);
  if (space > most / 2) return beginning.slice(0, space);
  // No word ends here (Chinese, base64): cut between characters, not inside a surrogate pair.
  const end = /[\uD800-\uDBFF]/.test(text[most - 1] ?? '') ? most - 1 : most;
  return text.slice(0, end);
}
