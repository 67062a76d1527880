/** The pieces that a model's own tokenizer makes of the text of a token it lacks. */
import { type Spelling, textOf } from './spelling';

/** Marks off the beginning of a text, so that what follows does not begin a word. */
const AHEAD = '\n';

/**
 * Rows of the pieces of every token; undefined where there are none. A tokenizer that puts a space in front of each text is asked
 * for the text without its own, or behind a line's end; pieces that spell another text all the same, lower-case letters say, are taken as they come.
 *
 * @param tokens bytes of the tokens, a letter each
 * @param unknown row of the token for what the model cannot write
 */
export async function piecesOf(
  tokens: readonly string[],
  { bytes, rows }: Spelling,
  ids: ReadonlyMap<string, number>,
  unknown: number | undefined,
  encodeAll: (texts: readonly string[]) => Promise<number[][]>,
): Promise<(number[] | undefined)[]> {
  const spelled = new Map([...ids].map(([token, id]) => [id, bytes.get(token)]));
  const pieces: (number[] | undefined)[] = tokens.map(() => undefined);
  const asWritten: (number[] | undefined)[] = tokens.map(() => undefined);
  const isWhole = (found: readonly number[]) => {
    const texts = found.map((id) => (id === unknown ? undefined : spelled.get(id)));
    return !texts.includes(undefined) && texts.join('').trim() !== '';
  };
  const spaced = (text: string) => text.startsWith(' ');
  const forms: ((text: string) => string)[] = [
    (text) => text,
    (text) => (spaced(text) ? text.slice(1) : AHEAD + text),
    (text) => (spaced(text) ? AHEAD + text : ''),
  ];
  for (const form of forms) {
    const left = tokens.flatMap((token, i) => {
      const text = pieces[i] ? undefined : textOf(token);
      return text === undefined || form(text) === '' ? [] : [{ i, token, text: form(text) }];
    });
    if (left.length === 0) break;
    const encoded = await encodeAll(left.map(({ text }) => text));
    for (const [at, { i, token }] of left.entries()) {
      const found = encoded[at]!;
      pieces[i] = exactPieces(found, token, spelled);
      if (form === forms[0] && isWhole(found)) asWritten[i] = found;
    }
  }
  return tokens.map((token, i) => pieces[i] ?? singleBytes(token, rows) ?? asWritten[i]);
}

/** The pieces that spell the token, without what stands ahead of it. */
function exactPieces(
  found: readonly number[],
  token: string,
  spelled: ReadonlyMap<number, string | undefined>,
): number[] | undefined {
  const texts = found.map((id) => spelled.get(id));
  if (texts.includes(undefined)) return undefined;
  for (let from = 0; from < found.length; from++) {
    if (texts.slice(from).join('') !== token) continue;
    return ['', ' ', AHEAD, ` ${AHEAD}`].includes(texts.slice(0, from).join(''))
      ? found.slice(from)
      : undefined;
  }
  return undefined;
}

function singleBytes(token: string, rows: ReadonlyMap<string, number>): number[] | undefined {
  const found = Array.from(token, (byte) => rows.get(byte));
  return found.length === 0 || found.includes(undefined) ? undefined : (found as number[]);
}
