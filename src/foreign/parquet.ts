/**
 * Parquet files, read by `hyparquet` page after page in the thread of foreign-text.ts. The library makes what a file
 * claims, so counts, sizes and depths are compared with the bytes there are before it sees them.
 */

import {
  type DecodedArray,
  type FileMetaData,
  parquetMetadata,
  parquetSchema,
  type SchemaTree,
} from 'hyparquet';
import { assembleNested } from 'hyparquet/src/assemble.js';
import { parquetHeader, readPage } from 'hyparquet/src/column.js';
import { convert, DEFAULT_PARSERS } from 'hyparquet/src/convert.js';
import { getTreePath, isFlatColumn } from 'hyparquet/src/schema.js';
import { compressors, decompressZstd } from 'hyparquet-compressors';
import { AmalgamError } from '../errors';
import { notUtf8 } from '../formats/conversations';
import { displayName } from '../formats/names';
import { counted } from '../formats/quantity';
import { checkShared, checkStruct, type Decoder, type Header, PAGE_BYTES } from './parquet-bounds';

export type RowValue = string | number | boolean | null | RowValue[] | { [field: string]: RowValue };

/** One row by the names of its columns. */
export type Row = Record<string, RowValue>;

/** Top-level columns, in the file's order. */
export interface ParquetColumns {
  all: string[];
  /** Those with one text a row. */
  texts: string[];
  /** Lists of what has a role and a content, as texts. */
  messages: string[];
  rows: number;
}

/** Bytes `[begin, end)` of the file. */
export type ReadBytes = (begin: number, end: number) => Promise<Uint8Array<ArrayBuffer>>;

type Chunk = NonNullable<FileMetaData['row_groups'][number]['columns'][number]['meta_data']>;

/** A footer larger than this describes no file that a tab should open. */
const FOOTER_BYTES = 16 << 20;
const MOST_COLUMNS = 10_000;
/** Columns in columns: real ones are three or four deep. */
const DEPTH = 16;
/** Values of a page; without a value, or equal to one another, they cost the file nothing. */
const PAGE_VALUES = 1 << 22;
/** The head of a page holds a few numbers, and with some writers the beginnings of its smallest and largest value. */
const HEAD_BYTES = 1 << 18;
/** Bytes asked for at once, but for the first time: a little text is often enough. */
const PIECE_BYTES = 1 << 21;
/** Characters and values of one row; a larger one is left out. */
const ROW_SIZE = 1 << 23;
/** Rows, and characters and values, that leave the thread at once. */
const BATCH_ROWS = 10_000;
const BATCH_SIZE = 1 << 21;

const MARK = 0x31524150;

/** Dates and times come as numbers of days, milli-, micro- or nanoseconds; bytes that are no text as null. */
function parsersOf(name: string): typeof DEFAULT_PARSERS {
  const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
  const text = (bytes: Uint8Array) => {
    try {
      return decoder.decode(bytes);
    } catch (cause) {
      throw notUtf8(name, cause);
    }
  };
  return {
    ...DEFAULT_PARSERS,
    ...{ timestampFromMilliseconds: Number, timestampFromMicroseconds: Number },
    ...{ timestampFromNanoseconds: Number, dateFromDays: Number },
    ...{ stringFromBytes: text, jsonFromBytes: text },
    ...{ geometryFromBytes: () => null, geographyFromBytes: () => null },
  };
}

/**
 * Reads the footer.
 * @throws AmalgamError `DatasetInvalid`, `LimitExceeded`; while reading also `NotUtf8` and `DatasetUnsupported`
 */
export function openParquet(name: string, byteLength: number, read: ReadBytes) {
  return guarded(name, () => open(name, byteLength, read));
}

async function open(name: string, byteLength: number, read: ReadBytes) {
  const metadata = await readFooter(name, byteLength, read);
  const tree = parquetSchema(metadata);
  const columns: ParquetColumns = {
    all: tree.children.map(({ element }) => element.name),
    texts: tree.children.filter(isText).map(({ element }) => element.name),
    messages: tree.children.filter(holdsMessages).map(({ element }) => element.name),
    rows: Number(metadata.num_rows),
  };
  const parsers = parsersOf(name);

  /** @param characters of a text that is a column of its own; what is longer is cut there */
  async function* rows(wanted: readonly string[], characters: number): AsyncGenerator<Row[]> {
    const trees = tree.children.filter(({ element }) => wanted.includes(element.name));
    if (trees.length === 0) return;
    const [only] = trees;
    const isStream =
      trees.length === 1 && only!.children.length === 0 && only!.element.repetition_type !== 'REPEATED';
    for (const group of metadata.row_groups) {
      const own = group.columns.flatMap((column) => {
        if (column.file_path || column.crypto_metadata || column.encrypted_column_metadata) {
          throw unsupported(name, 'keeps its columns in other files, or encrypts them');
        }
        const meta = column.meta_data;
        return meta && wanted.includes(meta.path_in_schema[0]!) ? [meta] : [];
      });
      const budget = { bytes: PAGE_BYTES };
      const count = Number(group.num_rows);
      if (isStream) {
        let left = count;
        for (const chunk of own) {
          for await (const values of pageValues(chunk, budget)) {
            budget.bytes = PAGE_BYTES;
            left -= values.length;
            if (left < 0) throw damaged(name, 'a column has more values than rows');
            yield* batches(values.length, (i) => ({ [only!.element.name]: values[i] }), characters);
          }
        }
        if (left > 0) throw damaged(name, `a column ends ${left} rows before its row group`);
        continue;
      }
      const leaves = new Map<string, DecodedArray>();
      for (const chunk of own) {
        const list: unknown[] = [];
        for await (const values of pageValues(chunk, budget, list)) {
          if (values !== list) for (const value of values) list.push(value);
        }
        leaves.set(chunk.path_in_schema.join('.'), list);
      }
      const assembled = trees.map((child) => {
        if (child.children.length > 0) assembleNested(leaves, child, parsers);
        const values = leaves.get(child.element.name);
        if (values?.length === count) return { key: child.element.name, values };
        throw damaged(name, `${values?.length ?? 'no'} values for ${counted(count, 'row')}`);
      });
      const row = (i: number) => Object.fromEntries(assembled.map(({ key, values }) => [key, values[i]]));
      yield* batches(count, row, characters);
    }
  }

  /** The values of a column of a row group, page after page; those of a nested one go on in `list`. */
  async function* pageValues(
    chunk: Chunk,
    budget: { bytes: number },
    list?: unknown[],
  ): AsyncGenerator<DecodedArray> {
    const schemaPath = getTreePath(tree, chunk.path_in_schema);
    const { element } = schemaPath.at(-1)!;
    const { codec, type } = chunk;
    const own = { ...compressors, ZSTD: unpackZstd };
    if (codec !== 'UNCOMPRESSED' && !own[codec]) {
      throw unsupported(name, `is packed with ${codec ?? 'an unknown codec'}, which is not supported`);
    }
    const decoder: Decoder = {
      ...{ pathInSchema: chunk.path_in_schema, type, element, schemaPath, codec },
      ...{ parsers, compressors: own },
    };
    const isFlat = isFlatColumn(schemaPath);
    let dictionary: DecodedArray | undefined;
    let left = Number(chunk.num_values);
    for await (const { header, bytes } of pages(chunk, budget)) {
      const reader = { view: new DataView(bytes.buffer), offset: 0 };
      if (header.type === 'INDEX_PAGE') continue;
      if (header.type !== 'DICTIONARY_PAGE') left -= valuesOf(header);
      if (left < 0) throw damaged(name, 'a column has more values than its row group says');
      checkShared(header, bytes, decoder);
      const { data = [] } = readPage(reader, header, decoder, dictionary, isFlat ? undefined : list, 0);
      if (header.type === 'DICTIONARY_PAGE') dictionary = convert(data, decoder);
      else yield data;
      if (left === 0) return;
    }
    if (left > 0) throw damaged(name, `a column ends ${left} values before its row group`);
  }

  /** The pages of a chunk, read in pieces of the file; each has bytes of its own, so that nothing is read beyond them. */
  async function* pages(
    chunk: Chunk,
    budget: { bytes: number },
  ): AsyncGenerator<{ header: Header; bytes: Uint8Array<ArrayBuffer> }> {
    const { dictionary_page_offset: dictionary, data_page_offset: data } = chunk;
    const begin = Number(dictionary && dictionary < data ? dictionary : data);
    const end = begin + Number(chunk.total_compressed_size);
    if (!(begin >= 0 && end >= begin && end <= byteLength)) {
      throw damaged(name, 'its footer points beyond the file');
    }
    let piece = new Uint8Array(0);
    let ahead = begin;
    /** Has at least `count` bytes in the piece, or all there are. */
    const have = async (count: number) => {
      if (piece.length >= count || ahead === end) return;
      const asked = ahead === begin ? HEAD_BYTES : PIECE_BYTES;
      const to = Math.min(end, ahead + Math.max(asked, count - piece.length));
      const more = await read(ahead, to);
      ahead = to;
      const joined = new Uint8Array(piece.length + more.length);
      joined.set(piece);
      joined.set(more, piece.length);
      piece = joined;
    };
    while (ahead < end || piece.length > 0) {
      await have(HEAD_BYTES);
      const view = new DataView(piece.buffer, piece.byteOffset, piece.byteLength);
      checkStruct(view, 0);
      const reader = { view, offset: 0 };
      const header = parquetHeader(reader);
      const { compressed_page_size: packed, uncompressed_page_size: unpacked } = header;
      budget.bytes -= unpacked;
      if (!(unpacked >= 0 && budget.bytes >= 0 && valuesOf(header) <= PAGE_VALUES)) {
        throw tooLarge(
          name,
          `a page of ${unpacked} bytes and ${valuesOf(header)} values, or too many of them`,
        );
      }
      piece = piece.subarray(reader.offset);
      if (!(packed >= 0 && packed <= end - ahead + piece.length)) {
        throw damaged(name, 'a page is larger than its column');
      }
      await have(packed);
      yield { header, bytes: piece.slice(0, packed) };
      piece = piece.subarray(packed);
    }
  }

  let selected: AsyncGenerator<Row[]> | undefined;
  return {
    columns,
    /** Rows with these columns are read from the first on. */
    select(wanted: readonly string[], characters: number): void {
      selected = rows(wanted, characters);
    },
    /** The next rows; none at the end. */
    next: () => guarded(name, async (): Promise<Row[]> => (await selected!.next()).value ?? []),
  };
}

export type ParquetFile = Awaited<ReturnType<typeof openParquet>>;

async function readFooter(name: string, byteLength: number, read: ReadBytes): Promise<FileMetaData> {
  if (byteLength < 12) throw damaged(name, 'it is too short');
  const tail = new DataView((await read(byteLength - 8, byteLength)).buffer);
  const length = tail.getUint32(0, true);
  if (tail.getUint32(4, true) !== MARK) throw damaged(name, 'it does not end as a parquet file does');
  if (length > byteLength - 12) throw damaged(name, 'its footer is longer than the file');
  if (length > FOOTER_BYTES) throw tooLarge(name, `a footer of ${counted(length, 'byte')}`);
  const bytes = await read(byteLength - 8 - length, byteLength);
  checkStruct(new DataView(bytes.buffer, 0, length), 0);
  const metadata = parquetMetadata(bytes.buffer, { geoparquet: false });
  const rows = metadata.row_groups.reduce((sum, { num_rows }) => sum + Number(num_rows), 0);
  if (rows !== Number(metadata.num_rows)) {
    throw damaged(name, 'its row groups do not add up to its row count');
  }
  // the library walks down the tree, and keeps the path of every element
  const open: number[] = [];
  for (const { num_children: children = 0 } of metadata.schema) {
    while (open.at(-1) === 0) open.pop();
    if (open.length > 0) open[open.length - 1]!--;
    open.push(children);
    if (open.length > DEPTH) throw damaged(name, 'its columns are nested too deep');
  }
  if (metadata.schema.length > MOST_COLUMNS)
    throw tooLarge(name, `${counted(metadata.schema.length, 'column')}`);
  return metadata;
}

const valuesOf = ({ data_page_header, data_page_header_v2, dictionary_page_header }: Header): number =>
  (data_page_header ?? data_page_header_v2 ?? dictionary_page_header)?.num_values ?? 0;

function isText({ children, element }: SchemaTree): boolean {
  const { type, repetition_type, converted_type, logical_type } = element;
  // those without a mark, too: old writers left it out
  const mark = logical_type?.type ?? converted_type ?? 'UTF8';
  return (
    type === 'BYTE_ARRAY' &&
    children.length === 0 &&
    repetition_type !== 'REPEATED' &&
    ['UTF8', 'STRING', 'ENUM', 'JSON'].includes(mark)
  );
}

/** Whether a column is a list of what has a role and a content, as text. */
function holdsMessages(tree: SchemaTree): boolean {
  const names = new Set<string>();
  const walk = (node: SchemaTree, isListed: boolean): void => {
    const listed = isListed || node.element.repetition_type === 'REPEATED';
    if (listed && isText(node)) names.add(node.element.name);
    for (const child of node.children) walk(child, listed);
  };
  walk(tree, false);
  return (names.has('role') && names.has('content')) || (names.has('from') && names.has('value'));
}

/** Rows in parts that can cross to another thread. One that is too large has no values. */
function* batches(
  count: number,
  rowOf: (index: number) => Record<string, unknown>,
  characters: number,
): Generator<Row[]> {
  let batch: Row[] = [];
  let size = 0;
  for (let i = 0; i < count; i++) {
    let left = ROW_SIZE;
    const plain = (value: unknown): RowValue => {
      left -= typeof value === 'string' ? value.length : 1;
      if (left < 0 || value === undefined || value instanceof Uint8Array) return null;
      if (typeof value === 'bigint') return Number(value);
      if (typeof value !== 'object' || value === null) return value as RowValue;
      if (Array.isArray(value)) return value.map(plain);
      return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, plain(inner)]));
    };
    const row = Object.fromEntries(
      Object.entries(rowOf(i)).map(([key, value]) => [
        key,
        plain(typeof value === 'string' ? value.slice(0, characters) : value),
      ]),
    );
    batch.push(left < 0 ? {} : row);
    size += left < 0 ? 1 : ROW_SIZE - left;
    if (batch.length === BATCH_ROWS || size > BATCH_SIZE) {
      yield batch;
      batch = [];
      size = 0;
    }
  }
  if (batch.length > 0) yield batch;
}

/** What the library throws says that the file is damaged. */
async function guarded<T>(name: string, act: () => Promise<T>): Promise<T> {
  try {
    return await act();
  } catch (thrown) {
    if (thrown instanceof AmalgamError) throw thrown;
    throw damaged(name, thrown instanceof Error ? thrown.message : String(thrown), thrown);
  }
}

/** Without an array to fill, the codec makes one as large as the page says. */
const unpackZstd = (packed: Uint8Array, length: number) => decompressZstd(packed, new Uint8Array(length));

/** The error for bytes that are not what they should be. */
function damaged(name: string, why: string, cause?: unknown): AmalgamError {
  return new AmalgamError(
    'DatasetInvalid',
    `${name} cannot be read as parquet: ${displayName(why)}.`,
    'The file is damaged or of another kind. Choose another one.',
    { cause },
  );
}

function tooLarge(name: string, what: string): AmalgamError {
  return new AmalgamError('LimitExceeded', `${name} has ${what}.`, 'Choose a file with smaller pages.');
}

function unsupported(name: string, what: string): AmalgamError {
  return new AmalgamError(
    'DatasetUnsupported',
    `${name} ${what}.`,
    'Choose a copy compressed with snappy, zstd, gzip, brotli or lz4, or an uncompressed one.',
  );
}
