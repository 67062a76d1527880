/** Files of one JSON object a line (.jsonl; the .json of many datasets is the same). */
import { AmalgamError } from '../errors';
import { chooseColumn } from './column';
import type { RowTexts } from './row-texts';
import { decodeText } from './text-stream';

/** A line longer than this is no row of text. */
const LINE_CHARACTERS = 64 << 20;

const NO_TEXT: RowTexts = { texts: [], present: new Uint32Array(1) };

/** One column of the rows. `column` is settled by the first row. */
export interface LineValues {
  column: string;
  /** Row by row. */
  values: AsyncIterable<RowTexts>;
}

/**
 * @throws AmalgamError `DatasetUnsupported` for one JSON array, `JsonInvalid` naming the line, `ColumnMissing`,
 *   `TextEmpty` for a file without rows, `NotUtf8`
 */
export async function readLines(
  stream: AsyncIterable<Uint8Array<ArrayBuffer>>,
  name: string,
  asked: string | undefined,
): Promise<LineValues> {
  const rows = parseRows(decodeText(stream, name), name);
  const first = await rows.next();
  if (first.done) throw new AmalgamError('TextEmpty', `${name} has no rows.`, 'Choose another file.');
  const column = chooseColumn(name, stringFields(first.value.fields), Object.keys(first.value.fields), asked);
  return { column, values: values() };

  async function* values(): AsyncGenerator<RowTexts> {
    for (let row = first; !row.done; row = await rows.next()) {
      const { fields, line } = row.value;
      const value = Object.hasOwn(fields, column) ? fields[column] : null;
      if (value !== null && typeof value !== 'string') {
        throw new AmalgamError(
          'JsonInvalid',
          `${name}, line ${line}: “${column}” is not a string.`,
          'Choose a column that holds text in every row.',
        );
      }
      yield value === null ? NO_TEXT : { texts: [value] };
    }
  }
}

/** The text columns of the first row. @throws as {@link readLines} */
export async function lineColumns(
  stream: AsyncIterable<Uint8Array<ArrayBuffer>>,
  name: string,
): Promise<string[]> {
  const first = await parseRows(decodeText(stream, name), name).next();
  return first.done ? [] : stringFields(first.value.fields);
}

/** One line. */
export interface Line {
  fields: Record<string, unknown>;
  /** Counted from 1. */
  line: number;
}

/** The rows of a file, as they come. @throws as {@link readLines} */
export async function* parseRows(text: AsyncIterable<string>, name: string): AsyncGenerator<Line> {
  let line = 0;
  for await (const content of lines(text, name)) {
    line++;
    if (content.trim() !== '') yield { fields: parseRow(content, name, line), line };
  }
}

async function* lines(text: AsyncIterable<string>, name: string): AsyncGenerator<string> {
  let open = '';
  for await (const piece of text) {
    // only what is new is looked through: a line may come in a thousand pieces
    const parts = piece.split('\n');
    parts[0] = open + parts[0]!;
    open = parts.pop()!;
    if (open.length > LINE_CHARACTERS) {
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

function parseRow(content: string, name: string, line: number): Record<string, unknown> {
  let value: unknown;
  try {
    value = JSON.parse(content);
  } catch (cause) {
    if (line === 1 && /^\s*[[{]\s*$|^\s*\[/.test(content)) throw oneDocument(name, cause);
    throw notARow(name, line, cause);
  }
  if (Array.isArray(value) && line === 1) throw oneDocument(name);
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw notARow(name, line);
  return value as Record<string, unknown>;
}

function stringFields(fields: Record<string, unknown>): string[] {
  return Object.keys(fields).filter((key) => typeof fields[key] === 'string');
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
    'Every line must look like {"text": "…"}.',
    { cause },
  );
}
