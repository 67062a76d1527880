/** Text columns of parquet files, by hyparquet: the footer first, then of each row group the pages of one column. */
import type { AsyncBuffer, FileMetaData, SchemaElement } from 'hyparquet';
import { AmalgamError } from '../errors';
import type { ByteSource } from '../sources/byte-source';
import { throwIfCancelled } from '../sources/cancel';
import { chooseColumn } from './column';
import { notUtf8, refusePointer } from './text-stream';

/** Rows decoded at a time, where the file has page indexes. */
const ROWS = 1000;
/** Bytes of one column of a row group that are decoded at once. */
const GROUP_BYTES = 256 << 20;
/** A footer larger than this describes no file that a tab should open. */
const FOOTER_BYTES = 64 << 20;

export interface ParquetFile {
  /** Columns that hold text, in the file's order. */
  columns: string[];
  rows: number;
  /** The column that is read. @throws AmalgamError `ColumnMissing` */
  column(asked: string | undefined): string;
  /** The column's values, row after row; nothing is read ahead of the row group at hand. */
  read(asked: string | undefined): AsyncIterable<string | null>;
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
  const parquet = await import('hyparquet');
  const read = async (begin: number, end: number): Promise<ArrayBuffer> => {
    // a damaged footer may point anywhere
    if (!(begin >= 0 && begin <= end && end <= source.byteLength)) {
      throw invalid(name, 'its footer points beyond the file');
    }
    const bytes = await source.read(begin, end, signal);
    return bytes.byteLength === bytes.buffer.byteLength ? bytes.buffer : bytes.slice().buffer;
  };
  const file: AsyncBuffer = {
    byteLength: source.byteLength,
    slice(begin, end = source.byteLength) {
      const reading = read(begin, end);
      // the library begins several reads at once and forgets the others when one fails
      reading.catch(() => undefined);
      return reading;
    },
  };
  const guarded = async <T>(work: () => Promise<T>): Promise<T> => {
    try {
      return await work();
    } catch (thrown) {
      throwIfCancelled(signal);
      if (thrown instanceof AmalgamError) throw thrown;
      throw invalid(name, thrown);
    }
  };
  const footer = await guarded(() => footerBytes(file, name));
  const metadata = await guarded(() =>
    parquet.parquetMetadataAsync(file, { geoparquet: false, initialFetchSize: footer }),
  );
  const top = topLevel(metadata);
  const texts = top.filter(isText).map((element) => element.name);
  const column = (asked: string | undefined) =>
    chooseColumn(
      name,
      texts,
      top.map((element) => element.name),
      asked,
    );

  return {
    columns: texts,
    rows: Number(metadata.num_rows),
    column,
    async *read(asked) {
      const chosen = column(asked);
      const { compressors } = await import('hyparquet-compressors');
      checkCodecs(metadata, chosen, name, compressors);
      const scan = await guarded(() =>
        parquet.parquetScan({
          file,
          metadata,
          columns: [chosen],
          compressors,
          parsers: { stringFromBytes: strictText(name) },
        }),
      );
      for (const { rowStart, rowEnd } of scan.ranges) {
        const step = hasPageIndex(metadata, chosen) ? ROWS : rowEnd - rowStart;
        for (let begin = rowStart; begin < rowEnd; begin += step) {
          throwIfCancelled(signal);
          const end = Math.min(begin + step, rowEnd);
          const values = await guarded(() =>
            scan.readColumn({ column: chosen, rowStart: begin, rowEnd: end }),
          );
          if (values.length !== end - begin)
            throw invalid(name, `${values.length} rows instead of ${end - begin}`);
          for (const value of values) {
            if (value !== null && value !== undefined && typeof value !== 'string') throw notUtf8(name);
            yield value ?? null;
          }
        }
      }
    },
  };
}

/** Bytes of the footer with what ends it: a parquet file ends with the footer's length and PAR1. */
async function footerBytes(file: AsyncBuffer, name: string): Promise<number> {
  if (file.byteLength < 12) throw invalid(name, 'it is too short');
  const head = new Uint8Array(await file.slice(0, Math.min(64, file.byteLength)));
  refusePointer(head, name);
  const tail = new DataView(await file.slice(file.byteLength - 8, file.byteLength));
  if (tail.getUint32(4, true) !== 0x31524150) throw invalid(name, 'it does not end as one');
  const footer = tail.getUint32(0, true);
  if (footer > file.byteLength - 12) throw invalid(name, 'its footer is longer than the file');
  if (footer > FOOTER_BYTES) throw tooLarge(name, `a footer of ${footer} bytes`);
  return footer + 8;
}

/** Columns that are no struct, list or map: the children of the root. */
function topLevel({ schema }: FileMetaData): SchemaElement[] {
  const top: SchemaElement[] = [];
  for (let i = 1; i < schema.length; i = after(i)) top.push(schema[i]!);
  return top;

  function after(i: number): number {
    let next = i + 1;
    for (let child = 0; child < (schema[i]?.num_children ?? 0) && next < schema.length; child++)
      next = after(next);
    return next;
  }
}

/** Byte arrays marked as UTF-8, and those without a mark, which old writers left out. */
function isText({
  type,
  converted_type,
  logical_type,
  num_children,
  repetition_type,
}: SchemaElement): boolean {
  if (type !== 'BYTE_ARRAY' || num_children || repetition_type === 'REPEATED') return false;
  const mark = logical_type?.type ?? converted_type;
  return mark === undefined || mark === 'STRING' || mark === 'UTF8' || mark === 'ENUM';
}

function columnChunks({ row_groups }: FileMetaData, column: string) {
  return row_groups.flatMap(({ columns }) =>
    columns.filter(({ meta_data }) => meta_data?.path_in_schema[0] === column),
  );
}

function hasPageIndex(metadata: FileMetaData, column: string): boolean {
  return columnChunks(metadata, column).every((chunk) => chunk.offset_index_offset !== undefined);
}

function checkCodecs(metadata: FileMetaData, column: string, name: string, known: object): void {
  for (const { meta_data } of columnChunks(metadata, column)) {
    const codec = meta_data?.codec ?? 'UNCOMPRESSED';
    if (codec !== 'UNCOMPRESSED' && !(codec in known)) {
      throw new AmalgamError(
        'DatasetUnsupported',
        `${name} is packed with ${codec}, which cannot be unpacked here.`,
        'Choose a copy packed with snappy, zstd, gzip, brotli or lz4, or not at all.',
      );
    }
    const bytes = Number(meta_data?.total_uncompressed_size ?? 0);
    if (bytes > GROUP_BYTES && !hasPageIndex(metadata, column)) {
      throw tooLarge(name, `${bytes} bytes of “${column}” in one row group and no page index`);
    }
  }
}

function strictText(name: string): (bytes: Uint8Array | undefined) => string | undefined {
  const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
  return (bytes) => {
    try {
      return bytes && decoder.decode(bytes);
    } catch (cause) {
      throw notUtf8(name, cause);
    }
  };
}

function tooLarge(name: string, what: string): AmalgamError {
  return new AmalgamError('LimitExceeded', `${name} has ${what}.`, 'Choose a file with smaller row groups.');
}

function invalid(name: string, why: unknown): AmalgamError {
  const words = why instanceof Error ? why.message : String(why);
  return new AmalgamError(
    'DatasetInvalid',
    `${name} cannot be read as parquet: ${words}.`,
    'The file is damaged or of another kind. Choose another one.',
    { cause: why },
  );
}
