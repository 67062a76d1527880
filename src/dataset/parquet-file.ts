/**
 * Text columns of parquet files: the footer first, then of each row group the pages of one column, one after the other.
 * The decoding is ours, since only texts at the top level are wanted and a damaged file must neither hang nor fill the
 * memory; the codecs are hyparquet's.
 */
import { AmalgamError } from '../errors';
import { conversationColumns } from '../formats/conversations';
import type { ByteSource } from '../sources/byte-source';
import { throwIfCancelled } from '../sources/cancellation';
import type { ReadableColumns } from './column';
import { type Cursor, damaged, takeUint32, tooLarge } from './cursor';
import { type ColumnChunk, type ParquetColumn, type ParquetFooter, readFooter } from './parquet-footer';
import { assembleRows, LeafReader } from './parquet-leaf';
import { dictionaryTexts, type PageHead, pageTexts, readPageHead } from './parquet-page';
import type { RowTexts } from './row-texts';
import type { Row } from './rows';
import { notUtf8, refusePointer } from './text-stream';

/** A footer larger than this describes no file that a tab should open. */
const FOOTER_BYTES = 64 << 20;
/** A page is decoded at once; writers make pages of about a megabyte. */
const PAGE_BYTES = 256 << 20;
/** The head of a page holds a few numbers, and with some writers the beginnings of its smallest and largest value. */
const HEAD_BYTES = 1 << 18;
/** Bytes asked for at once, but for the first time: a little text is often enough. */
const PIECE_BYTES = 1 << 21;

/** Codecs by their numbers in parquet.thrift. */
const CODECS = ['UNCOMPRESSED', 'SNAPPY', 'GZIP', 'LZO', 'BROTLI', 'LZ4', 'ZSTD', 'LZ4_RAW'] as const;
const PARQUET_MARK = 0x31524150;

interface ParquetFile {
  /** In the file's order. */
  columns: ReadableColumns;
  rows: number;
  /** A column's values, page after page; little is read ahead of the page at hand. */
  read(column: string): AsyncIterable<RowTexts>;
  /** Rows with some of their columns, row group after row group. */
  records(columns: readonly string[]): AsyncIterable<Row[]>;
}

/**
 * Reads the footer.
 * @throws AmalgamError `DatasetInvalid`, `LfsPointer`, `LimitExceeded`; while reading also `ColumnMissing`, `NotUtf8`,
 *   `DatasetUnsupported` for an unknown codec; and what the source throws
 */
export async function openParquet(
  source: ByteSource,
  name: string,
  signal?: AbortSignal,
): Promise<ParquetFile> {
  const footer = readFooter(await footerCursor(source, name, signal));
  const { columns, rows, groups, leaves } = footer;
  const texts = columns.filter(({ isText }) => isText).map((column) => column.name);
  const all = columns.map((column) => column.name);
  const lists = all.filter((column) => holdsMessages(leaves, column));
  return {
    columns: { texts, conversations: conversationColumns(texts, lists), all },
    rows,
    async *read(column) {
      const chosen = columns.find((c) => c.name === column)!;
      const chunks = chunksOf(groups, chosen, source, name);
      const unpack = await unpacker(name);
      for (const chunk of chunks) yield* readChunk(chunk, chosen.optional, unpack, source, name, signal);
    },
    records: (some) => readRows(footer, some, source, name, signal),
  };
}

/** Whether a column is a list of what has a role and a content, as text. */
function holdsMessages(leaves: ParquetFooter['leaves'], column: string): boolean {
  const inside = leaves.filter(
    ({ nodes, isText }) => isText && nodes[0]!.name === column && nodes.length > 2,
  );
  const names = new Set(
    inside
      .filter(({ nodes }) => nodes.some(({ repetition }) => repetition === 'repeated'))
      .map(({ nodes }) => nodes.at(-1)!.name),
  );
  return (names.has('role') && names.has('content')) || (names.has('from') && names.has('value'));
}

/** The footer: a parquet file ends with it, its length and PAR1. */
async function footerCursor(source: ByteSource, name: string, signal?: AbortSignal): Promise<Cursor> {
  const { byteLength } = source;
  if (byteLength < 12) throw damaged({ name }, 'it is too short');
  refusePointer(await source.read(0, Math.min(64, byteLength), signal), name);
  const tail: Cursor = { bytes: await source.read(byteLength - 8, byteLength, signal), at: 0, name };
  const footer = takeUint32(tail);
  if (takeUint32(tail) !== PARQUET_MARK) throw damaged({ name }, 'it does not end as a parquet file does');
  if (footer > byteLength - 12) throw damaged({ name }, 'its footer is longer than the file');
  if (footer > FOOTER_BYTES) throw tooLarge(name, `a footer of ${footer} bytes`);
  return { bytes: await source.read(byteLength - 8 - footer, byteLength - 8, signal), at: 0, name };
}

/**
 * All rows of a file, row group after row group. Columns whose values have no place in a task (dates, decimals, blobs) are
 * left out.
 * @throws AmalgamError as {@link openParquet}
 */
export async function* readRecords(
  source: ByteSource,
  name: string,
  signal?: AbortSignal,
): AsyncGenerator<Row[]> {
  yield* readRows(readFooter(await footerCursor(source, name, signal)), undefined, source, name, signal);
}

/** @param some columns at the top level; default all */
async function* readRows(
  { leaves, groups }: ParquetFooter,
  some: readonly string[] | undefined,
  source: ByteSource,
  name: string,
  signal: AbortSignal | undefined,
): AsyncGenerator<Row[]> {
  const wanted = leaves.filter(({ nodes }) => !some || some.includes(nodes[0]!.name));
  const readers = wanted.flatMap((leaf) => LeafReader.of(leaf, name, strictText(name)) ?? []);
  const unpack = await unpacker(name);
  for (const group of groups) {
    throwIfCancelled(signal);
    const rows: Row[] = Array.from({ length: group.rows }, () => ({}));
    for (const reader of readers) {
      const [chunk] = chunksOf([group], { name: reader.leaf.column }, source, name, reader.isNested);
      const column = reader.begin();
      let left = chunk!.values;
      for await (const { head, bytes } of pages(chunk!, source, name, signal)) {
        if (head.kind === 'index') continue;
        if (head.kind !== 'dictionary' && head.values > left) {
          throw damaged({ name }, 'a column has more values than rows');
        }
        column.add(head, { bytes: unpack(chunk!, head, bytes), at: 0, name });
        if (head.kind !== 'dictionary') left -= head.values;
        if (left === 0) break;
      }
      if (left > 0) throw damaged({ name }, `a column ends ${left} rows before its row group`);
      assembleRows(reader.leaf, column, rows, name);
    }
    yield rows;
  }
}

/** The chunks of a column in order, checked against the file before any of them is read. */
function chunksOf(
  groups: ParquetFooter['groups'],
  column: Pick<ParquetColumn, 'name'>,
  source: ByteSource,
  name: string,
  isNested = false,
): ColumnChunk[] {
  return groups.map(({ rows, chunks }) => {
    const [chunk, second] = chunks.filter((c) => c.column === column.name);
    if (!chunk || second) throw damaged({ name }, 'a row group lacks the column, or has it twice');
    if (chunk.elsewhere) throw unsupported(name, 'keeps its columns in other files, or encrypts them');
    if (!isNested && chunk.values !== rows)
      throw damaged({ name }, `${chunk.values} values for ${rows} rows`);
    if (chunk.end > source.byteLength) throw damaged({ name }, 'its footer points beyond the file');
    const codec = CODECS[chunk.codec];
    if (!codec || codec === 'LZO') {
      throw unsupported(name, `is packed with ${codec ?? `codec ${chunk.codec}`}, which is not supported`);
    }
    return chunk;
  });
}

async function* readChunk(
  chunk: ColumnChunk,
  optional: boolean,
  unpack: Unpack,
  source: ByteSource,
  name: string,
  signal: AbortSignal | undefined,
): AsyncGenerator<RowTexts> {
  const decode = strictText(name);
  let dictionary: string[] | undefined;
  let left = chunk.values;
  for await (const { head, bytes } of pages(chunk, source, name, signal)) {
    if (head.kind === 'index') continue;
    if (head.kind !== 'dictionary' && head.values > left)
      throw damaged({ name }, 'a column has more values than rows');
    const body: Cursor = { bytes: unpack(chunk, head, bytes), at: 0, name };
    if (head.kind === 'dictionary') dictionary = dictionaryTexts(body, head, decode);
    else {
      yield pageTexts(body, head, optional, dictionary, decode);
      left -= head.values;
    }
    if (left === 0) return;
  }
  if (left > 0) throw damaged({ name }, `a column ends ${left} rows before its row group`);
}

interface Page {
  head: PageHead;
  /** As they are in the file. */
  bytes: Uint8Array<ArrayBuffer>;
}

/** The pages of a chunk, read in pieces of the file. */
async function* pages(
  { begin, end, unpackedBytes }: ColumnChunk,
  source: ByteSource,
  name: string,
  signal: AbortSignal | undefined,
): AsyncGenerator<Page> {
  let piece: Cursor = { bytes: new Uint8Array(0), at: 0, name };
  /** Where the piece ends in the file. */
  let read = begin;
  /** Has at least `count` bytes before the cursor, or all there are. */
  const have = async (count: number) => {
    const rest = piece.bytes.subarray(piece.at);
    if (rest.length >= count || read === end) return;
    throwIfCancelled(signal);
    const asked = read === begin ? HEAD_BYTES : PIECE_BYTES;
    const to = Math.min(end, read + Math.max(asked, count - rest.length));
    const more = await source.read(read, to, signal);
    read = to;
    const bytes = rest.length === 0 ? more : new Uint8Array(rest.length + more.length);
    if (bytes !== more) {
      bytes.set(rest);
      bytes.set(more, rest.length);
    }
    piece = { bytes, at: 0, name };
  };
  while (read < end || piece.at < piece.bytes.length) {
    await have(HEAD_BYTES);
    const head = readPageHead(piece);
    const { packedBytes } = head;
    if (head.unpackedBytes > PAGE_BYTES) throw tooLarge(name, `a page of ${head.unpackedBytes} bytes`);
    if (packedBytes > end - read + piece.bytes.length - piece.at || head.unpackedBytes > unpackedBytes) {
      throw damaged({ name }, 'a page is larger than its column');
    }
    await have(packedBytes);
    yield { head, bytes: piece.bytes.subarray(piece.at, piece.at + packedBytes) };
    piece.at += packedBytes;
  }
}

type Unpack = (chunk: ColumnChunk, head: PageHead, bytes: Uint8Array<ArrayBuffer>) => Uint8Array<ArrayBuffer>;

async function unpacker(name: string): Promise<Unpack> {
  const { compressors, decompressZstd } = await import('hyparquet-compressors');
  return ({ codec }, head, bytes) => {
    const inFront = head.kind === 'data2' ? head.repetitionBytes + head.levelBytes : 0;
    const length = head.unpackedBytes - inFront;
    if (inFront > bytes.length || length < 0) throw damaged({ name }, 'a page is shorter than its levels');
    const packed = bytes.subarray(inFront);
    const values = codec === 0 || !head.isPacked ? packed : unpackValues(codec, packed, length);
    if (values.length !== length) {
      throw damaged({ name }, `a page decompresses to ${values.length} bytes instead of ${length}`);
    }
    if (inFront === 0) return values;
    const whole = new Uint8Array(head.unpackedBytes);
    whole.set(bytes.subarray(0, inFront));
    whole.set(values, inFront);
    return whole;
  };

  function unpackValues(codec: number, packed: Uint8Array, length: number): Uint8Array<ArrayBuffer> {
    const known = CODECS[codec]!;
    if (length === 0) return new Uint8Array(0);
    try {
      // without an array to fill, the codec makes one as large as the page says
      if (known === 'ZSTD') return new Uint8Array(decompressZstd(packed, new Uint8Array(length)));
      return new Uint8Array(compressors[known]!(packed, length));
    } catch (cause) {
      throw damaged({ name }, 'a page cannot be decompressed', cause);
    }
  }
}

function strictText(name: string): (bytes: Uint8Array) => string {
  const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
  return (bytes) => {
    try {
      return decoder.decode(bytes);
    } catch (cause) {
      throw notUtf8(name, cause);
    }
  };
}

function unsupported(name: string, what: string): AmalgamError {
  return new AmalgamError(
    'DatasetUnsupported',
    `${name} ${what}.`,
    'Choose a copy compressed with snappy, zstd, gzip, brotli or lz4, or an uncompressed one.',
  );
}
