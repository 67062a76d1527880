/** Texts as they come from files, and the part of them that is scored. */
import { AmalgamError } from '../../errors';

/** What `quick` scores of a text: about 500 tokens of English, seconds on any engine. */
export const QUICK_CHARACTERS = 1500;

/** What a recipe calls text that the model writes itself; no text has this name. */
const SELF = 'self';

/** Larger files are refused: a browser tab would have to hold text, tokens and losses at once. */
export const MAX_TEXT_BYTES = 20_000_000;

/** The part of a text that is scored: all of it, or the beginning up to the last whole word. */
export function scoredText(text: string, amount: 'quick' | 'full'): string {
  if (amount === 'full' || text.length <= QUICK_CHARACTERS) return text;
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

/** SHA-256 in hex of what is scored of a text, quick and full. */
export async function textHashes(text: string): Promise<{ quick: string; full: string }> {
  const full = await sha256(text);
  const quick = scoredText(text, 'quick');
  return { quick: quick.length === text.length ? full : await sha256(quick), full };
}

async function sha256(text: string): Promise<string> {
  const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(text));
  return Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, '0')).join('');
}

/**
 * The text of a file: a `.jsonl` file is the `text` field of every line, joined by blank lines; anything else is text
 * as it stands.
 * @throws AmalgamError `JsonInvalid` naming the line, `TextEmpty`
 */
export function textOfFile(name: string, content: string): string {
  const text = /\.(jsonl|ndjson)$/i.test(name) ? textOfLines(name, content) : content.replace(/^\uFEFF/, '');
  if (text.trim() === '') {
    throw new AmalgamError('TextEmpty', `${name} holds no text.`, 'Choose a file with some text in it.');
  }
  return text;
}

function textOfLines(name: string, content: string): string {
  const texts: string[] = [];
  for (const [index, line] of content
    .replace(/^\uFEFF/, '')
    .split(/\r?\n/)
    .entries()) {
    if (line.trim() === '') continue;
    const text = textField(line);
    if (text === undefined) {
      throw new AmalgamError(
        'JsonInvalid',
        `${name}, line ${index + 1}: this is not a JSON object with a string under “text”.`,
        'Every line must look like {"text": "…"}. A plain .txt file works, too.',
      );
    }
    texts.push(text);
  }
  return texts.join('\n\n');
}

function textField(line: string): string | undefined {
  try {
    const value: unknown = JSON.parse(line);
    if (typeof value !== 'object' || value === null || !('text' in value)) return undefined;
    return typeof value.text === 'string' ? value.text : undefined;
  } catch {
    // Not JSON at all: the caller says so, with the line's number.
    return undefined;
  }
}
