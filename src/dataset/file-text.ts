/** Text out of a file of a dataset, as much of it as is wanted, read from the front or by columns. */
import { AmalgamError } from '../errors';
import { openGuardedParquet } from '../foreign/foreign-text';
import type { ParquetColumns, Row } from '../foreign/parquet';
import {
  type ConversationColumns,
  columnsTitle,
  conversationColumns,
  conversationLine,
  conversationOf,
  namesOf,
  refusePointer,
} from '../formats/conversations';
import { displayName } from '../formats/names';
import type { DatasetColumns, DatasetText } from '../reports/dataset';
import type { ByteSource } from '../sources/byte-source';
import { chooseColumn, type ReadableColumns } from './column';
import { columnsOf, parseRows } from './json-lines';
import { textKind } from './text-kind';
import { decodeText, openStream } from './text-stream';

/** Rows without a value cost a file nothing: a kilobyte can promise billions. */
const MOST_EMPTY = 1 << 20;

/** Source of a text, and the part of it that is wanted. */
export interface TextRange {
  /** Field of each row, or the title of conversations; default as {@link chooseColumn}. Not for plain text files. */
  column?: string;
  /** Most rows. Not for plain text files. */
  rows?: number;
  /** Most characters (UTF-16 units); the text is cut there. */
  characters: number;
}

/** Rows are joined by blank lines (wikitext's "\n\n".join), empty rows included. */
type ReadText = Omit<DatasetText, 'ref' | 'path'>;

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
      return withParquet(source, name, signal, async ({ columns, rows }) => {
        const column = chooseColumn(name, readable(columns), range.column);
        const wanted = typeof column === 'string' ? [column] : namesOf(column);
        return collect(name, column, rows(wanted, range.characters + 1), range);
      });
    }
    const stream = openStream(source, name, kind.gzip, signal);
    if (kind.format === 'text') return collectText(decodeText(stream, name), range.characters);
    const rows = parseRows(decodeText(stream, name), name);
    const first = await rows.next();
    if (first.done) throw new AmalgamError('TextEmpty', `${name} has no rows.`, 'Choose another file.');
    const column = chooseColumn(name, columnsOf(first.value), range.column);
    return collect(name, column, groups(first.value), range);

    async function* groups(row: Row): AsyncGenerator<Row[]> {
      yield [row];
      for await (const more of rows) yield [more];
    }
  }
}

/** A parquet file for as long as it is used. @throws as `openGuardedParquet`, and `LfsPointer` */
export async function withParquet<T>(
  source: ByteSource,
  name: string,
  signal: AbortSignal | undefined,
  use: (file: Awaited<ReturnType<typeof openGuardedParquet>>) => Promise<T>,
): Promise<T> {
  refusePointer(await source.read(0, Math.min(64, source.byteLength), signal), name);
  const file = await openGuardedParquet(source, name, signal);
  try {
    return await use(file);
  } finally {
    file.close();
  }
}

function readable({ all, texts, messages }: ParquetColumns): ReadableColumns {
  return { all, texts, conversations: conversationColumns(texts, messages) };
}

/**
 * Readable columns of a file, in the file's order; none to choose from for plain text.
 * @throws as {@link readText}
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
    return withParquet(source, name, signal, async ({ columns }) =>
      described(readable(columns), columns.rows),
    );
  }
  const stream = openStream(source, name, kind.gzip, signal);
  const first = await parseRows(decodeText(stream, name), name).next();
  return described(first.done ? undefined : columnsOf(first.value), null);
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

/** Conversations are not cut: the last one may go beyond the characters. A row without a text is left out and counted. */
async function collect(
  name: string,
  column: string | ConversationColumns,
  groups: AsyncIterable<readonly Row[]>,
  { rows = Number.POSITIVE_INFINITY, characters }: TextRange,
): Promise<ReadText> {
  const isText = typeof column === 'string';
  const title = isText ? column : columnsTitle(column);
  const between = isText ? '\n\n' : '\n';
  const taken: string[] = [];
  let length = 0;
  let empty = 0;
  for await (const group of groups) {
    for (const row of group) {
      if (taken.length === rows || length >= characters) return done(false);
      const text = isText ? row[column] : conversationLineOf(row, column);
      if (typeof text === 'string') {
        length += text.length + (taken.length > 0 ? between.length : 0);
        taken.push(text);
      } else if (++empty > MOST_EMPTY) throw tooEmpty();
    }
  }
  return done(!isText || length <= characters);

  function tooEmpty(): AmalgamError {
    return new AmalgamError(
      'LimitExceeded',
      `${name} has more than ${MOST_EMPTY} rows without a value of “${displayName(title)}”.`,
      'Choose another column, or another file.',
    );
  }

  function done(whole: boolean): ReadText {
    const text = taken.join(between);
    return { text: isText ? cut(text, characters) : text, column: title, rows: taken.length, empty, whole };
  }
}

function conversationLineOf(row: Row, columns: ConversationColumns): string | undefined {
  const messages = conversationOf(row, columns);
  return messages && conversationLine(messages);
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
