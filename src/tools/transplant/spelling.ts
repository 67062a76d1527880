/**
 * What tokens stand for, whatever letters their tokenizers write them with: bytes of text. `Ġthe` of a byte-level tokenizer, `▁the`
 * of SentencePiece and `the` of WordPiece are one token; so are `Ċ` and `<0x0A>`. Added tokens of a text are that text; special ones
 * are matched by their content, else by what they are for.
 */
import { BYTE_OF_LETTER } from '../../formats/byte-letters';
import { TOKEN_FIELDS } from '../../formats/chat-template';
import { type JsonValue, parseJsonObject } from '../../formats/strict-json';
import type { TokenizerTokens } from '../../formats/tokenizer-json';
import { readSmallText } from '../../inputs/header';
import type { KnownVocabulary } from '../../merge/vocabulary/vocabulary';
import { findFile } from '../../sources/model-folder';

const MAX_BYTES = 16 * 2 ** 20;

/** How a tokenizer writes bytes as letters. */
type Alphabet = 'bytes' | 'marks' | 'pieces' | 'text';

/** Parts of a tokenizer.json that say how it writes. */
function alphabetOf({ type, rest }: TokenizerTokens): Alphabet {
  if (type === 'WordPiece') return 'pieces';
  const kinds = ['pre_tokenizer', 'decoder', 'normalizer'].flatMap((name) => stepsOf(rest.get(name)));
  if (kinds.some((kind) => kind === 'ByteLevel')) return 'bytes';
  return kinds.some((kind) => kind === 'Metaspace' || kind === '▁') ? 'marks' : 'text';
}

/** Types of a step and of those inside it; of a replacement of spaces the mark that it writes. */
function stepsOf(step: JsonValue | undefined): unknown[] {
  if (!(step instanceof Map)) return [];
  const inner = ['pretokenizers', 'decoders', 'normalizers'].flatMap((name) => {
    const list = step.get(name);
    return Array.isArray(list) ? list.flatMap(stepsOf) : [];
  });
  const isMark = [step.get('prepend'), step.get('content')].includes('▁');
  return [step.get('type'), ...(isMark ? ['▁'] : []), ...inner];
}

const encoder = new TextEncoder();
const byteString = (bytes: Iterable<number>) => String.fromCharCode(...bytes);
const textBytes = (text: string) => byteString(encoder.encode(text));

/** Bytes of a token of the model itself, a letter each. */
function bytesOf(token: string, alphabet: Alphabet): string {
  const byte = /^<0x([0-9A-Fa-f]{2})>$/.exec(token);
  if (byte && alphabet !== 'bytes') return byteString([Number.parseInt(byte[1]!, 16)]);
  switch (alphabet) {
    case 'bytes': {
      const bytes = Array.from(token, (letter) => BYTE_OF_LETTER.get(letter));
      return bytes.includes(undefined) ? textBytes(token) : byteString(bytes as number[]);
    }
    case 'marks':
      return textBytes(token.replaceAll('▁', ' '));
    case 'pieces':
      return textBytes(token.startsWith('##') ? token.slice(2) : ` ${token}`);
    default:
      return textBytes(token);
  }
}

/** The tokens of a model by what they stand for. */
export interface Spelling {
  /** Bytes of each token, a letter each; undefined for special ones. */
  bytes: ReadonlyMap<string, string | undefined>;
  /** Bytes → row of the embedding. Of several tokens a whole one, then the first. */
  rows: ReadonlyMap<string, number>;
  /** Special tokens: content → row, and role (`eos_token`) → row. */
  special: ReadonlyMap<string, number>;
  roles: ReadonlyMap<string, number>;
  alphabet: Alphabet;
}

/** @throws AmalgamError of reading the small files */
export async function spellingOf(vocabulary: KnownVocabulary): Promise<Spelling> {
  const { tokens, ids } = vocabulary;
  const alphabet = alphabetOf(tokens);
  const roles = await rolesOf(vocabulary);
  const meant = new Set(roles.values());
  const bytes = new Map<string, string | undefined>();
  const rows = new Map<string, number>();
  const special = new Map<string, number>();
  const inOrder = [...ids].sort(([a, i], [b, j]) => Number(isByte(a)) - Number(isByte(b)) || i - j);
  for (const [token, id] of inOrder) {
    const added = tokens.added.get(token);
    const isSpecial = added?.special === true || meant.has(id);
    const own = isSpecial ? undefined : added ? textBytes(token) : bytesOf(token, alphabet);
    bytes.set(token, own);
    if (own === undefined) special.set(token, id);
    else if (!rows.has(own)) rows.set(own, id);
  }
  return { bytes, rows, special, roles, alphabet };
}

const isByte = (token: string) => /^<0x[0-9A-Fa-f]{2}>$/.test(token);

/** Role → row, by tokenizer_config.json, special_tokens_map.json, and the ids of config.json. */
async function rolesOf({ folder, path, ids, rows }: KnownVocabulary): Promise<Map<string, number>> {
  const roles = new Map<string, number>();
  const objects = await Promise.all(
    ['tokenizer_config.json', 'special_tokens_map.json', 'config.json'].map(async (name) => {
      const file = findFile(folder, name);
      return file ? parseJsonObject(await readSmallText(file, path, MAX_BYTES), `${path}/${name}`) : {};
    }),
  );
  for (const role of TOKEN_FIELDS) {
    for (const object of objects) {
      const token = object[role];
      const content = Object(token).content ?? token;
      const stated = Object(object.text_config)[`${role}_id`] ?? object[`${role}_id`];
      const id = typeof content === 'string' ? ids.get(content) : [stated].flat()[0];
      if (roles.has(role) || typeof id !== 'number' || !(id < rows)) continue;
      roles.set(role, id);
    }
  }
  return roles;
}

/** Order in which the roles of a token are looked for: the end of a text is what a model has to know. */
const ROLES = ['eos_token', 'bos_token', ...TOKEN_FIELDS];

/**
 * Rows of the model for the tokens of the donor: row of the donor → row of the model.
 * @returns and of them those matched by a special token's role or content
 */
export function sharedRows(
  model: Spelling,
  donor: Spelling,
  tokens: ReadonlyMap<string, number>,
): { rows: Map<number, number>; special: number } {
  const rows = new Map<number, number>();
  let special = 0;
  for (const [token, id] of tokens) {
    const bytes = donor.bytes.get(token);
    let row: number | undefined;
    if (bytes === undefined) {
      const role = ROLES.find((name) => donor.roles.get(name) === id && model.roles.has(name));
      row = model.special.get(token) ?? (role === undefined ? undefined : model.roles.get(role));
      if (row !== undefined) special++;
    } else {
      // WordPiece writes a mark of its own before nothing but what follows in a word
      const loose = donor.alphabet === 'pieces' || model.alphabet === 'pieces';
      row = model.rows.get(bytes) ?? (loose ? model.rows.get(otherSpace(bytes)) : undefined);
    }
    if (row !== undefined) rows.set(id, row);
  }
  return { rows, special };
}

const otherSpace = (bytes: string) => (bytes.startsWith(' ') ? bytes.slice(1) : ` ${bytes}`);

/** The text of a token's bytes; undefined where they are no whole characters. */
export function textOf(bytes: string): string | undefined {
  try {
    const all = Uint8Array.from(bytes, (letter) => letter.charCodeAt(0));
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(all);
  } catch {
    return undefined;
  }
}

// The pieces that a model's own tokenizer makes of the text of a token it lacks.

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
