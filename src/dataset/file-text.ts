/** Text out of a file of a dataset, as much of it as is wanted, read from the front or by columns. */
import { AmalgamError } from '../errors';
import { type ConversationColumns, columnsTitle, namesOf } from '../formats/conversations';
import { displayName } from '../formats/names';
import type { DatasetColumns } from '../reports/dataset';
import type { ByteSource } from '../sources/byte-source';
import { chooseColumn, type ReadableColumns } from './column';
import { lineColumns, readLines, rowConversation } from './json-lines';
import { openParquet } from './parquet-file';
import type { RowTexts } from './row-texts';
import type { Row } from './rows';
import { textKind } from './text-kind';
import { decodeText, openStream } from './text-stream';

/** Rows without a value cost a file nothing: a kilobyte can promise billions. */
const MOST_EMPTY = 1 << 20;

/** Where a text comes from and how much of it is wanted. */
export interface TextRange {
  /** Field of each row, or the title of conversations; default as {@link chooseColumn}. Not for plain text files. */
  column?: string;
  /** Most rows. Not for plain text files. */
  rows?: number;
  /** Most characters (UTF-16 units); the text is cut there. */
  characters: number;
}

interface ReadText {
  /** Rows are joined by blank lines (wikitext's "\n\n".join), empty rows included; conversations are one a line. */
  text: string;
  /** The column taken; null for plain text. */
  column: string | null;
  /** Rows taken, null ones not counted, and rows without a value that were left out; 0 for plain text. */
  rows: number;
  empty: number;
  /** False when a limit was reached before the end of the file. */
  whole: boolean;
}

/**
 * Reads the beginning of a file as text; of a large file only the parts that are needed.
 *
 * @param name the file in messages
 * @param path decides how it is read ({@link textKind})
 * @throws AmalgamError `DatasetUnsupported` (no kind of text, an unknown codec, one JSON array), `DatasetInvalid`,
 *   `ColumnMissing`, `NotUtf8`, `LfsPointer`, `JsonInvalid`, `TextEmpty`, `LimitExceeded`, and what the source throws
 */
export async function readText(
  source: ByteSource,
  name: string,
  path: string,
  range: TextRange,
  signal?: AbortSignal,
): Promise<ReadText> {
  const kind = requireKind(name, path);
  const read = await readKind();
  if (read.text.trim() !== '') return read;
  throw new AmalgamError(
    'TextEmpty',
    `${name} holds no text in what was read.`,
    'Take more rows, or another file.',
  );

  async function readKind(): Promise<ReadText> {
    if (kind.format === 'parquet') {
      const parquet = await openParquet(source, name, signal);
      const column = chooseColumn(name, parquet.columns, range.column);
      if (typeof column === 'string') return collect(name, column, parquet.read(column), range);
      const rows = parquet.records(namesOf(column));
      return collect(name, columnsTitle(column), rowConversations(rows, column), range, true);
    }
    const stream = openStream(source, name, kind.gzip, signal);
    if (kind.format === 'lines') {
      const { column, values, isConversations } = await readLines(stream, name, range.column);
      return collect(name, column, values, range, isConversations);
    }
    return collectText(decodeText(stream, name), range.characters);
  }
}

async function* rowConversations(
  rows: AsyncIterable<Row[]>,
  columns: ConversationColumns,
): AsyncGenerator<RowTexts> {
  for await (const group of rows) for (const row of group) yield rowConversation(row, columns);
}

/**
 * What a file has to read, in the file's order; nothing to choose for plain text.
 * @throws what {@link readText} throws
 */
export async function textColumns(
  source: ByteSource,
  name: string,
  path: string,
  signal?: AbortSignal,
): Promise<DatasetColumns> {
  const kind = requireKind(name, path);
  const described = (found: ReadableColumns | undefined, rows: number | null): DatasetColumns => ({
    columns: [...(found?.texts ?? [])],
    conversations: found?.conversations ? columnsTitle(found.conversations) : null,
    rows,
  });
  if (kind.format === 'text') return described(undefined, null);
  if (kind.format === 'parquet') {
    const { columns, rows } = await openParquet(source, name, signal);
    return described(columns, rows);
  }
  return described(await lineColumns(openStream(source, name, kind.gzip, signal), name), null);
}

function requireKind(name: string, path: string) {
  const kind = textKind(path);
  if (kind) return kind;
  throw new AmalgamError(
    'DatasetUnsupported',
    `${name} is not a file that can be read as text.`,
    'Choose a .parquet, .jsonl, .json or .txt file; .gz of the last three is fine.',
  );
}

/** @param whole rows are conversations, which are not cut: the last one may go beyond the characters */
async function collect(
  name: string,
  column: string,
  values: AsyncIterable<RowTexts>,
  { rows = Number.POSITIVE_INFINITY, characters }: TextRange,
  whole = false,
): Promise<ReadText> {
  const between = whole ? '\n' : '\n\n';
  const taken: string[] = [];
  let length = 0;
  let empty = 0;
  const isFull = () => taken.length === rows || length >= characters;
  for await (const { texts, present } of values) {
    let row = 0;
    for (const text of texts) {
      for (; present?.[row] === 0; row++) if (!isFull()) empty++;
      if (isFull()) return done(false);
      length += text.length + (taken.length > 0 ? between.length : 0);
      taken.push(text);
      row++;
    }
    const rest = (present?.length ?? row) - row;
    if (rest > 0 && isFull()) return done(false);
    empty += rest;
    if (empty > MOST_EMPTY) throw tooEmpty();
  }
  return done(whole || length <= characters);

  function tooEmpty(): AmalgamError {
    return new AmalgamError(
      'LimitExceeded',
      `${name} has more than ${MOST_EMPTY} rows without a value of “${displayName(column)}”.`,
      'Choose another column, or another file.',
    );
  }

  function done(all: boolean): ReadText {
    const text = taken.join(between);
    return { text: whole ? text : cut(text, characters), column, rows: taken.length, empty, whole: all };
  }
}

async function collectText(pieces: AsyncIterable<string>, characters: number): Promise<ReadText> {
  let text = '';
  for await (const piece of pieces) {
    text += piece;
    if (text.length > characters) break;
  }
  const whole = text.length <= characters;
  return { text: cut(text, characters), column: null, rows: 0, empty: 0, whole };
}

/** At most this many UTF-16 units, no pair of them torn. */
function cut(text: string, characters: number): string {
  if (text.length <= characters) return text;
  const torn = /[\uD800-\uDBFF]/.test(text[characters - 1] ?? '');
  return text.slice(0, torn ? characters - 1 : characters);
}
