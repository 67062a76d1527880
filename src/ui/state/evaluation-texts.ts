/** Texts from files, and their scored part: only the tabs that score need it. */
import { isConversations } from '../../formats/conversations';

/** Characters of a text that `quick` scores: about 500 tokens of English, seconds on any engine. */
export const QUICK_CHARACTERS = 1500;

/** Name in recipes for text that the model generates itself; no file has this name. */
const SELF = 'self';

/** Larger files are refused: a browser tab would have to hold text, tokens and losses at once. */
export const MAX_TEXT_BYTES = 20_000_000;

/**
 * The scored part of a text: all of it, or the beginning up to the last whole word (of conversations, the last whole one).
 */
export function scoredText(text: string, amount: 'quick' | 'full'): string {
  if (amount === 'full' || text.length <= QUICK_CHARACTERS) return text;
  if (isConversations(text)) {
    const end = text.lastIndexOf('\n', QUICK_CHARACTERS);
    return end > 0 ? text.slice(0, end) : (text.split('\n', 1)[0] ?? text);
  }
  const beginning = text.slice(0, QUICK_CHARACTERS + 1);
  const space = beginning.search(/\s\S*$/);
  if (space > QUICK_CHARACTERS / 2) return beginning.slice(0, space);
  // No word ends here (Chinese, base64): cut between characters, not inside a surrogate pair.
  const end = /[\uD800-\uDBFF]/.test(text[QUICK_CHARACTERS - 1] ?? '')
    ? QUICK_CHARACTERS - 1
    : QUICK_CHARACTERS;
  return text.slice(0, end);
}

/** The name, or the name with the first number from 2 that makes it none of those taken. */
export function freeName(name: string, taken: readonly string[]): string {
  const all = new Set(taken);
  let free = name;
  for (let n = 2; all.has(free) || free === SELF; n++) free = `${name} (${n})`;
  return free;
}

/** SHA-256 in hex of the scored part of a text, quick and full. */
export async function textHashes(text: string): Promise<{ quick: string; full: string }> {
  const full = await sha256(text);
  const quick = scoredText(text, 'quick');
  return { quick: quick.length === text.length ? full : await sha256(quick), full };
}

async function sha256(text: string): Promise<string> {
  const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(text));
  return Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, '0')).join('');
}
