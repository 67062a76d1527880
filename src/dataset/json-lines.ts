/** Files of one JSON object a line (.jsonl; the .json of many datasets is the same). */
import { AmalgamError } from '../errors';
import type { Row } from '../foreign/parquet';
import { conversationColumnsOf, parseLoosely } from '../formats/conversations';
import type { ReadableColumns } from './column';

/** A line longer than this is no row of text. */
const LINE_CHARACTERS = 1 << 23;

/** Readable columns of a row. */
export function columnsOf(row: Row): ReadableColumns {
  const all = Object.keys(row);
  const texts = all.filter((key) => typeof row[key] === 'string');
  return { texts, conversations: conversationColumnsOf(row), all };
}

/**
 * The rows of a text, as they come. Numbers that JSON has no word for (`NaN`, written by Python) are null.
 * @throws AmalgamError `DatasetUnsupported` for one JSON array, `JsonInvalid` naming the line, `LimitExceeded`
 */
export async function* parseRows(
  text: AsyncIterable<string> | Iterable<string>,
  name: string,
): AsyncGenerator<Row> {
  let line = 0;
  for await (const content of lines(text, name)) {
    line++;
    if (content.trim() !== '')
      yield parseRow(line === 1 ? content.replace(/^\uFEFF/, '') : content, name, line);
  }
}

async function* lines(text: AsyncIterable<string> | Iterable<string>, name: string): AsyncGenerator<string> {
  let open = '';
  for await (const piece of text) {
    // only what is new is looked through: a line may come in a thousand pieces
    const parts = piece.split('\n');
    parts[0] = open + parts[0]!;
    open = parts.pop()!;
    if ([open, ...parts].some(({ length }) => length > LINE_CHARACTERS)) {
      throw new AmalgamError(
        'LimitExceeded',
        `${name} has a line of more than ${LINE_CHARACTERS} characters.`,
        'It is not a file with one row per line. Choose another file.',
      );
    }
    yield* parts;
  }
  yield open;
}

function parseRow(content: string, name: string, line: number): Row {
  let value: unknown;
  try {
    value = parseLoosely(content);
  } catch (cause) {
    if (line === 1 && /^\s*[[{]\s*$|^\s*\[/.test(content)) throw oneDocument(name, cause);
    throw notARow(name, line, cause);
  }
  if (Array.isArray(value) && line === 1) throw oneDocument(name);
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw notARow(name, line);
  return value as Row;
}

function oneDocument(name: string, cause?: unknown): AmalgamError {
  return new AmalgamError(
    'DatasetUnsupported',
    `${name} is one JSON document, not one object per line.`,
    'Choose the .parquet or .jsonl form of the data.',
    { cause },
  );
}

function notARow(name: string, line: number, cause?: unknown): AmalgamError {
  return new AmalgamError(
    'JsonInvalid',
    `${name}, line ${line}: this is not a JSON object.`,
    'Every line must be an object, such as {"text": "…"}: mend this one, or get the file again.',
    { cause },
  );
}
