/** The footer of a parquet file: its columns, and where each row group keeps them (parquet.thrift, FileMetaData). */
import { type Cursor, damaged } from './cursor';
import { type Field, readCount, readInteger, readStruct, readStructs, readText, readTexts } from './thrift';

export interface ParquetFooter {
  columns: ParquetColumn[];
  rows: number;
  groups: RowGroup[];
}

/** A column at the top level. */
export interface ParquetColumn {
  name: string;
  /** Holds one text in every row, or in some. */
  isText: boolean;
  /** Rows may be without a value. */
  optional: boolean;
}

export interface RowGroup {
  rows: number;
  /** Columns at the top level that are no struct, list or map. */
  chunks: ColumnChunk[];
}

/** A column of one row group. */
export interface ColumnChunk {
  column: string;
  codec: number;
  /** Values, those left out counted. */
  values: number;
  /** Where its pages are in the file. */
  begin: number;
  end: number;
  /** Bytes of its pages when they are unpacked, heads included. */
  unpackedBytes: number;
  /** In another file, or encrypted. */
  elsewhere: boolean;
}

/** Numbers of parquet.thrift. */
const BYTE_ARRAY = 6;
const REQUIRED = 0;
const OPTIONAL = 1;
const UTF8 = 0;
const ENUM = 4;
const LOGICAL_STRING = 1;
const LOGICAL_ENUM = 4;

/** @throws AmalgamError `DatasetInvalid` */
export function readFooter(cursor: Cursor): ParquetFooter {
  let schema: SchemaElement[] | undefined;
  let rows: number | undefined;
  const groups: RowGroup[] = [];
  readStruct(cursor, (field) => {
    if (field.id === 2) schema = readSchema(cursor, field);
    else if (field.id === 3) rows = readCount(cursor, field);
    else if (field.id === 4) readStructs(cursor, field, () => groups.push(readGroup(cursor)));
    else return false;
    return true;
  });
  if (!schema || rows === undefined) throw damaged(cursor, 'its footer has no schema');
  if (groups.reduce((sum, group) => sum + group.rows, 0) !== rows) {
    throw damaged(cursor, 'its row groups do not have the rows it says');
  }
  return { columns: topLevel(cursor, schema), rows, groups };
}

interface SchemaElement extends ParquetColumn {
  children: number;
}

function readSchema(cursor: Cursor, list: Field): SchemaElement[] {
  const elements: SchemaElement[] = [];
  readStructs(cursor, list, () => {
    let name = '';
    let type = -1;
    let repetition = REQUIRED;
    let children = 0;
    let mark: number | undefined;
    let logical: number | undefined;
    readStruct(cursor, (field) => {
      if (field.id === 1) type = readCount(cursor, field);
      else if (field.id === 3) repetition = readCount(cursor, field);
      else if (field.id === 4) name = readText(cursor, field);
      else if (field.id === 5) children = readCount(cursor, field);
      else if (field.id === 6) mark = readInteger(cursor, field);
      else if (field.id === 10) {
        readStruct(cursor, (kind) => {
          logical = kind.id;
          return false;
        });
      } else return false;
      return true;
    });
    // byte arrays marked as UTF-8, and those without a mark, which old writers left out
    const isMarked =
      logical !== undefined
        ? logical === LOGICAL_STRING || logical === LOGICAL_ENUM
        : mark === undefined || mark === UTF8 || mark === ENUM;
    const isText = type === BYTE_ARRAY && children === 0 && repetition <= OPTIONAL && isMarked;
    elements.push({ name, isText, optional: repetition === OPTIONAL, children });
  });
  return elements;
}

/** The children of the root; what is below them is passed over. */
function topLevel(cursor: Cursor, [root, ...elements]: SchemaElement[]): ParquetColumn[] {
  const top: ParquetColumn[] = [];
  for (let i = 0; i < elements.length; ) {
    const { name, isText, optional, children } = elements[i]!;
    top.push({ name, isText, optional });
    i++;
    for (let open = children; open > 0; i++) {
      const inside = elements[i];
      if (!inside) throw damaged(cursor, 'its schema is not whole');
      open += inside.children - 1;
    }
  }
  if (!root || top.length !== root.children) throw damaged(cursor, 'its schema is not whole');
  return top;
}

function readGroup(cursor: Cursor): RowGroup {
  const chunks: ColumnChunk[] = [];
  let rows: number | undefined;
  readStruct(cursor, (field) => {
    if (field.id === 1) {
      readStructs(cursor, field, () => {
        const chunk = readChunk(cursor);
        if (chunk) chunks.push(chunk);
      });
    } else if (field.id === 3) rows = readCount(cursor, field);
    else return false;
    return true;
  });
  if (rows === undefined) throw damaged(cursor, 'a row group does not say how many rows it has');
  return { rows, chunks };
}

/** A chunk, or undefined for one of a column inside another. */
function readChunk(cursor: Cursor): ColumnChunk | undefined {
  let path: string[] | undefined;
  let elsewhere = false;
  let codec = 0;
  let values = 0;
  let packedBytes = 0;
  let unpackedBytes = 0;
  let data: number | undefined;
  let dictionary = 0;
  const readMetadata = (field: Field): boolean => {
    if (field.id === 3) path = readTexts(cursor, field);
    else if (field.id === 4) codec = readCount(cursor, field);
    else if (field.id === 5) values = readCount(cursor, field);
    else if (field.id === 6) unpackedBytes = readCount(cursor, field);
    else if (field.id === 7) packedBytes = readCount(cursor, field);
    else if (field.id === 9) data = readCount(cursor, field);
    else if (field.id === 11) dictionary = readCount(cursor, field);
    else return false;
    return true;
  };
  readStruct(cursor, (field) => {
    if (field.id === 3) readStruct(cursor, readMetadata);
    else {
      // file_path, crypto_metadata, encrypted_column_metadata
      if (field.id === 1 || field.id === 8 || field.id === 9) elsewhere = true;
      return false;
    }
    return true;
  });
  if (path && path.length > 1) return undefined;
  if (!elsewhere && (!path || data === undefined)) throw damaged(cursor, 'a column does not say where it is');
  const begin = dictionary > 0 ? Math.min(dictionary, data ?? 0) : (data ?? 0);
  const end = begin + packedBytes;
  return { column: path?.[0] ?? '', codec, values, begin, end, unpackedBytes, elsewhere };
}
