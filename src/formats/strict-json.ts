/**
 * A strict, bounded JSON reader for headers and configs that may be hostile. Unlike `JSON.parse` it rejects duplicate
 * keys, preserves the text of numbers (so that a caller can demand a strict integer, and a config can be written back
 * without losing `1e-05` or `10000.0`), puts objects into `Map`s, and reads piece by piece, so that a caller who
 * knows what to expect never builds what it will throw away.
 */

import { AmalgamError, type ErrorCode } from '../errors';
import { displayName } from './names';
import { counted } from './quantity';

/** Deepest nesting taken. Real headers nest 3 deep and configs below 10; the recursive reader must not be overrun. */
export const MAX_JSON_DEPTH = 64;
/** Most keys of one object: ten times the tensors of the largest published model, and about 100 MB of names. */
const MAX_JSON_KEYS = 1_000_000;
/** Longest text given to {@link parseJson}: twice the largest published tokenizer.json (33 MB). */
export const MAX_JSON_LENGTH = 64 * 1024 * 1024;

/** Limits and permissions for one kind of JSON file. */
export interface JsonRules {
  /** Code of syntax errors. */
  code: Extract<ErrorCode, 'HeaderInvalid' | 'JsonInvalid'>;
  /** Longest text, in UTF-16 units. */
  maxLength: number;
  /** Longest string or number, in UTF-16 units of the source. */
  maxString: number;
  /** Take `NaN`, `Infinity` and `-Infinity`, which Python's json module writes. */
  pythonNumbers?: boolean;
}

/** A place in a JSON text. */
export interface JsonCursor {
  readonly text: string;
  readonly fileName: string;
  readonly rules: JsonRules;
  at: number;
  depth: number;
}

/** A number as it was written. */
interface JsonNumber {
  readonly text: string;
}
export type JsonObject = Map<string, JsonValue>;
export type JsonValue = null | boolean | string | JsonNumber | JsonValue[] | JsonObject;

export function isJsonNumber(value: JsonValue | undefined): value is JsonNumber {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Map);
}

/**
 * The value of a strict integer text in [0, 2^53): digits only, so `-0`, `1.0` and `1e3` are not integers.
 * Undefined otherwise.
 */
export function strictInteger(text: string): number | undefined {
  if (!/^(?:0|[1-9][0-9]{0,15})$/.test(text)) return undefined;
  const value = Number(text);
  return Number.isSafeInteger(value) ? value : undefined;
}

/** A value as `JSON.parse` has it. */
export type PlainJson = null | boolean | number | string | PlainJson[] | { [key: string]: PlainJson };

/** A value of the tree as plain data. */
export function plainJson(value: JsonValue): PlainJson {
  if (Array.isArray(value)) return value.map(plainJson);
  if (value instanceof Map) return Object.fromEntries([...value].map(([key, v]) => [key, plainJson(v)]));
  return isJsonNumber(value) ? Number(value.text) : value;
}

/** Reads a whole text into a tree. @throws AmalgamError `rules.code`, `DuplicateKey`, `LimitExceeded` */
export function parseStrictJson(text: string, fileName: string, rules: JsonRules): JsonValue {
  const cursor = openJson(text, fileName, rules);
  const value = readValue(cursor);
  endJson(cursor);
  return value;
}

/** Starts reading. @throws AmalgamError `LimitExceeded` when the text is too long */
export function openJson(text: string, fileName: string, rules: JsonRules): JsonCursor {
  if (text.length > rules.maxLength) {
    throw limit(
      fileName,
      `is ${counted(text.length, 'character')} long; at most ${rules.maxLength} are read`,
    );
  }
  return { text, fileName, rules, at: 0, depth: 0 };
}

/** Checks that only white space is left. @throws AmalgamError `rules.code` */
export function endJson(cursor: JsonCursor): void {
  skipSpace(cursor);
  if (cursor.at < cursor.text.length) throw syntax(cursor, 'something follows the end of the JSON document');
}

/** Kind of the next value; nothing is consumed but white space. @throws AmalgamError `rules.code` */
export function peekKind(cursor: JsonCursor): 'object' | 'array' | 'string' | 'number' | 'word' {
  skipSpace(cursor);
  const c = cursor.text[cursor.at];
  if (c === undefined) throw syntax(cursor, 'the text ends too early');
  if (c === '{') return 'object';
  if (c === '[') return 'array';
  if (c === '"') return 'string';
  if (c === '-' || (c >= '0' && c <= '9')) return 'number';
  return 'word';
}

/** Reads any value into a tree. */
export function readValue(cursor: JsonCursor): JsonValue {
  switch (peekKind(cursor)) {
    case 'object': {
      const object: JsonObject = new Map();
      readObject(cursor, (key) => object.set(key, readValue(cursor)));
      return object;
    }
    case 'array': {
      const array: JsonValue[] = [];
      readArray(cursor, () => array.push(readValue(cursor)));
      return array;
    }
    case 'string':
      return readString(cursor);
    case 'number':
      return { text: readNumber(cursor) };
    case 'word':
      return readWord(cursor);
  }
}

/** Skips any value, checking it like {@link readValue}. */
export function skipValue(cursor: JsonCursor): void {
  const kind = peekKind(cursor);
  if (kind === 'object') readObject(cursor, () => skipValue(cursor));
  else if (kind === 'array') readArray(cursor, () => skipValue(cursor));
  else readValue(cursor);
}

/**
 * Reads an object; `onKey` gets a key and where it begins, and must read the value.
 * @throws AmalgamError `DuplicateKey` naming the key, `LimitExceeded`, `rules.code`
 */
export function readObject(cursor: JsonCursor, onKey: (key: string, begin: number) => void): void {
  open(cursor, '{');
  const seen = new Set<string>();
  if (!close(cursor, '}')) {
    do {
      skipSpace(cursor);
      const begin = cursor.at;
      const key = readString(cursor);
      if (seen.has(key)) throw duplicate(cursor, key);
      if (seen.size === MAX_JSON_KEYS)
        throw limit(cursor.fileName, `has an object of more than ${MAX_JSON_KEYS} keys`);
      seen.add(key);
      skipSpace(cursor);
      take(cursor, ':');
      onKey(key, begin);
    } while (another(cursor, '}'));
  }
  cursor.depth--;
}

/** Reads an array; `onItem` must read the item at its index. @throws AmalgamError `rules.code`, `LimitExceeded` */
export function readArray(cursor: JsonCursor, onItem: (index: number) => void): void {
  open(cursor, '[');
  if (!close(cursor, ']')) {
    let index = 0;
    do onItem(index++);
    while (another(cursor, ']'));
  }
  cursor.depth--;
}

/** Reads a string. @throws AmalgamError `rules.code`, `LimitExceeded` */
export function readString(cursor: JsonCursor): string {
  skipSpace(cursor);
  const { text } = cursor;
  const begin = cursor.at;
  take(cursor, '"');
  let plain = true;
  for (let at = begin + 1; ; at++) {
    const c = text.charCodeAt(at);
    if (at - begin > cursor.rules.maxString) {
      throw limit(cursor.fileName, `has a string of more than ${cursor.rules.maxString} characters`);
    }
    if (Number.isNaN(c)) throw syntax(cursor, 'a string is not closed');
    if (c < 0x20) throw syntax({ ...cursor, at }, 'a string contains a control character');
    if (c === 0x5c) {
      plain = false;
      at++;
    } else if (c === 0x22) {
      cursor.at = at + 1;
      break;
    }
  }
  if (plain) return text.slice(begin + 1, cursor.at - 1);
  try {
    return JSON.parse(text.slice(begin, cursor.at)) as string;
  } catch (cause) {
    throw syntax({ ...cursor, at: begin }, 'a string has an invalid escape', cause);
  }
}

const NUMBER = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y;

/** Reads a number and returns its text. @throws AmalgamError `rules.code`, `LimitExceeded` */
export function readNumber(cursor: JsonCursor): string {
  skipSpace(cursor);
  NUMBER.lastIndex = cursor.at;
  if (!NUMBER.test(cursor.text)) {
    if (cursor.rules.pythonNumbers && cursor.text.startsWith('-Infinity', cursor.at)) {
      cursor.at += 9;
      return '-Infinity';
    }
    throw syntax(cursor, 'a number was expected');
  }
  const text = cursor.text.slice(cursor.at, NUMBER.lastIndex);
  if (text.length > cursor.rules.maxString) throw limit(cursor.fileName, 'has a number of absurd length');
  cursor.at += text.length;
  return text;
}

function readWord(cursor: JsonCursor): JsonValue {
  const word = /[A-Za-z]{0,9}/y;
  word.lastIndex = cursor.at;
  const text = word.exec(cursor.text)?.[0] ?? '';
  cursor.at += text.length;
  if (text === 'null') return null;
  if (text === 'true') return true;
  if (text === 'false') return false;
  if (cursor.rules.pythonNumbers && (text === 'NaN' || text === 'Infinity')) return { text };
  cursor.at -= text.length;
  throw syntax(cursor, 'a value was expected');
}

function skipSpace(cursor: JsonCursor): void {
  for (;;) {
    const c = cursor.text.charCodeAt(cursor.at);
    if (c !== 0x20 && c !== 0x0a && c !== 0x0d && c !== 0x09) return;
    cursor.at++;
  }
}

function take(cursor: JsonCursor, character: string): void {
  if (cursor.text[cursor.at] !== character) throw syntax(cursor, `“${character}” was expected`);
  cursor.at++;
}

function open(cursor: JsonCursor, bracket: '{' | '['): void {
  skipSpace(cursor);
  take(cursor, bracket);
  if (++cursor.depth > MAX_JSON_DEPTH) throw syntax(cursor, `it is nested more than ${MAX_JSON_DEPTH} deep`);
}

/** Consumes the closing bracket of an empty collection. */
function close(cursor: JsonCursor, bracket: '}' | ']'): boolean {
  skipSpace(cursor);
  if (cursor.text[cursor.at] !== bracket) return false;
  cursor.at++;
  return true;
}

/** After an item: true behind a comma, false behind the closing bracket. */
function another(cursor: JsonCursor, bracket: '}' | ']'): boolean {
  if (close(cursor, bracket)) return false;
  take(cursor, ',');
  return true;
}

function syntax(cursor: JsonCursor, why: string, cause?: unknown): AmalgamError {
  const what =
    cursor.rules.code === 'HeaderInvalid' ? 'the header is not valid JSON' : 'this is not valid JSON';
  return new AmalgamError(
    cursor.rules.code,
    `${displayName(cursor.fileName)}: ${what}: ${why} at character ${cursor.at + 1}.`,
    'The file is damaged or is not what its name says. Get it again.',
    { cause },
  );
}

function duplicate(cursor: JsonCursor, key: string): AmalgamError {
  return new AmalgamError(
    'DuplicateKey',
    `${displayName(cursor.fileName)}: the key “${displayName(key)}” appears twice.`,
    'It cannot be told which of the two is meant. Download the file again from its author.',
  );
}

/** The error for a file that is larger in some way than any real one. */
export function limit(fileName: string, what: string): AmalgamError {
  return new AmalgamError(
    'LimitExceeded',
    `${displayName(fileName)} ${what}.`,
    'No real file of its kind comes near this limit: it is damaged or malicious.',
  );
}

/**
 * `JSON.parse` for a trusted-shape file such as tokenizer.json, bounded in length and depth first. Objects are plain:
 * read them with `Object.hasOwn`.
 *
 * @throws AmalgamError `JsonInvalid` naming the file, `LimitExceeded`
 */
export function parseJson(text: string, fileName: string): unknown {
  if (text.length > MAX_JSON_LENGTH) {
    throw limit(
      fileName,
      `is ${counted(text.length, 'character')} long; at most ${MAX_JSON_LENGTH} are read`,
    );
  }
  if (deeperThan(text, MAX_JSON_DEPTH)) throw limit(fileName, `is nested more than ${MAX_JSON_DEPTH} deep`);
  try {
    return JSON.parse(text) as unknown;
  } catch (cause) {
    throw new AmalgamError(
      'JsonInvalid',
      `${displayName(fileName)}: this is not valid JSON: ${displayName((cause as Error).message)}.`,
      'The file is damaged or is not what its name says. Get it again.',
      { cause },
    );
  }
}

/** The same for a file that must hold an object. @throws AmalgamError `JsonInvalid` naming the file, `LimitExceeded` */
export function parseJsonObject(text: string, fileName: string): Record<string, unknown> {
  const value = parseJson(text, fileName);
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) {
    return value as Record<string, unknown>;
  }
  throw new AmalgamError(
    'JsonInvalid',
    `${displayName(fileName)} is not an object.`,
    'The file is damaged or is not what its name says. Get it again.',
  );
}

/** Counts brackets outside strings. */
function deeperThan(text: string, most: number): boolean {
  let depth = 0;
  let quoted = false;
  for (let at = 0; at < text.length; at++) {
    const c = text.charCodeAt(at);
    if (quoted) {
      if (c === 0x5c) at++;
      else if (c === 0x22) quoted = false;
    } else if (c === 0x22) quoted = true;
    else if (c === 0x7b || c === 0x5b) {
      if (++depth > most) return true;
    } else if (c === 0x7d || c === 0x5d) depth--;
  }
  return false;
}
