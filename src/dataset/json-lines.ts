/** Files of one JSON object a line (.jsonl; the .json of many datasets is the same). */
import { AmalgamError } from '../errors';
import {
  type ConversationColumns,
  columnsTitle,
  conversationColumnsOf,
  conversationLine,
  conversationOf,
} from '../formats/conversations';
import { chooseColumn, type ReadableColumns } from './column';
import type { RowTexts } from './row-texts';
import { decodeText } from './text-stream';

/** A line longer than this is no row of text. */
const LINE_CHARACTERS = 64 << 20;

const NO_TEXT: RowTexts = { texts: [], present: new Uint32Array(1) };

/** One column of the rows, or their conversations. `column` is settled by the first row. */
interface LineValues {
  column: string;
  /** Row by row; conversations as lines (formats/conversations.ts). */
  values: AsyncIterable<RowTexts>;
  isConversations: boolean;
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
  const column = chooseColumn(name, columnsOf(first.value.fields), asked);
  if (typeof column === 'string') return { column, values: values(column), isConversations: false };
  return { column: columnsTitle(column), values: conversations(column), isConversations: true };

  async function* values(key: string): AsyncGenerator<RowTexts> {
    for (let row = first; !row.done; row = await rows.next()) {
      const { fields, line } = row.value;
      const value = Object.hasOwn(fields, key) ? fields[key] : null;
      if (value !== null && typeof value !== 'string') {
        throw new AmalgamError(
          'JsonInvalid',
          `${name}, line ${line}: “${key}” is not a string.`,
          'Choose a column that holds text in every row.',
        );
      }
      yield value === null ? NO_TEXT : { texts: [value] };
    }
  }

  async function* conversations(columns: ConversationColumns): AsyncGenerator<RowTexts> {
    for (let row = first; !row.done; row = await rows.next())
      yield rowConversation(row.value.fields, columns);
  }
}

/** The conversation of a row, as the text of a row. */
export function rowConversation(
  row: Readonly<Record<string, unknown>>,
  columns: ConversationColumns,
): RowTexts {
  const messages = conversationOf(row, columns);
  return messages ? { texts: [conversationLine(messages)] } : NO_TEXT;
}

/** What the first row has to read; undefined for a file without rows. @throws as {@link readLines} */
export async function lineColumns(
  stream: AsyncIterable<Uint8Array<ArrayBuffer>>,
  name: string,
): Promise<ReadableColumns | undefined> {
  const first = await parseRows(decodeText(stream, name), name).next();
  return first.done ? undefined : columnsOf(first.value.fields);
}

function columnsOf(fields: Record<string, unknown>): ReadableColumns {
  const all = Object.keys(fields);
  const texts = all.filter((key) => typeof fields[key] === 'string');
  return { texts, conversations: conversationColumnsOf(fields), all };
}

/** One line. */
interface Line {
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
