/** The footer of a parquet file: its columns, and where each row group keeps them (parquet.thrift, FileMetaData). */
import { type Cursor, damaged } from './cursor';
import { type Field, readCount, readInteger, readStruct, readStructs, readText, readTexts } from './thrift';

export interface ParquetFooter {
  columns: ParquetColumn[];
  /** What is stored: of a struct or list what it holds. */
  leaves: ParquetLeaf[];
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

/** A column of values, at the top level or inside others. */
export interface ParquetLeaf {
  /** {@link ColumnChunk.column} of its chunks. */
  column: string;
  /** From the top level down. */
  nodes: LeafNode[];
  /** Number of parquet.thrift. */
  type: number;
  isText: boolean;
}

export interface LeafNode {
  name: string;
  repetition: 'required' | 'optional' | 'repeated';
  /** Its value is a field of what holds it; else it is the value: the parts of which a list is made. */
  isField: boolean;
}

interface RowGroup {
  rows: number;
  chunks: ColumnChunk[];
}

/** A column of one row group. */
export interface ColumnChunk {
  /** Its name, or with a NUL between them those of the columns that hold it and its own. */
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
const REPETITIONS = ['required', 'optional', 'repeated'] as const;
const LIST = 3;
const LOGICAL_LIST = 3;
/** Columns in columns: real ones are three or four deep. */
const DEPTH = 16;
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
    throw damaged(cursor, 'its row groups do not add up to its row count');
  }
  return { columns: topLevel(cursor, schema), leaves: leavesOf(cursor, schema), rows, groups };
}

interface SchemaElement extends ParquetColumn {
  children: number;
  type: number;
  repetition: number;
  isList: boolean;
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
    const isText = type === BYTE_ARRAY && children === 0 && isMarked;
    const isList = logical === LOGICAL_LIST || (logical === undefined && mark === LIST);
    elements.push({ name, isText, optional: repetition === OPTIONAL, children, type, repetition, isList });
  });
  return elements;
}

/** The children of the root; what is below them is passed over. */
function topLevel(cursor: Cursor, [root, ...elements]: SchemaElement[]): ParquetColumn[] {
  const top: ParquetColumn[] = [];
  for (let i = 0; i < elements.length; ) {
    const { name, isText, optional, children, repetition } = elements[i]!;
    top.push({ name, isText: isText && repetition <= OPTIONAL, optional });
    i++;
    for (let open = children; open > 0; i++) {
      const inside = elements[i];
      if (!inside) throw damaged(cursor, 'its schema is incomplete');
      open += inside.children - 1;
    }
  }
  if (!root || top.length !== root.children) throw damaged(cursor, 'its schema is incomplete');
  return top;
}

/** The leaves of the tree. A list is a column, the repeated one in it, and, where that has one child, the child. */
function leavesOf(cursor: Cursor, [root, ...elements]: SchemaElement[]): ParquetLeaf[] {
  const leaves: ParquetLeaf[] = [];
  let at = 0;
  /** `role`: what the element is of the list around it. */
  const walk = (path: string[], nodes: LeafNode[], role: 'field' | 'repeated' | 'element') => {
    const element = elements[at++];
    if (!element || nodes.length === DEPTH) throw damaged(cursor, 'its schema is incomplete');
    const { name, type, isText, children, isList } = element;
    const repetition = REPETITIONS[element.repetition];
    if (!repetition) throw damaged(cursor, 'its schema is incomplete');
    const ownPath = [...path, name];
    const ownNodes = [...nodes, { name, repetition, isField: role === 'field' }];
    const inner =
      isList && children === 1 ? 'repeated' : role === 'repeated' && children === 1 ? 'element' : 'field';
    if (children === 0) leaves.push({ column: ownPath.join('\0'), nodes: ownNodes, type, isText });
    for (let child = 0; child < children; child++) walk(ownPath, ownNodes, inner);
  };
  for (let child = 0; child < (root?.children ?? 0); child++) walk([], [], 'field');
  return leaves;
}

function readGroup(cursor: Cursor): RowGroup {
  const chunks: ColumnChunk[] = [];
  let rows: number | undefined;
  readStruct(cursor, (field) => {
    if (field.id === 1) {
      readStructs(cursor, field, () => chunks.push(readChunk(cursor)));
    } else if (field.id === 3) rows = readCount(cursor, field);
    else return false;
    return true;
  });
  if (rows === undefined) throw damaged(cursor, 'a row group has no row count');
  return { rows, chunks };
}

function readChunk(cursor: Cursor): ColumnChunk {
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
  if (!elsewhere && (!path || data === undefined)) throw damaged(cursor, 'a column has no offset');
  const begin = dictionary > 0 ? Math.min(dictionary, data ?? 0) : (data ?? 0);
  const end = begin + packedBytes;
  return { column: path?.join('\0') ?? '', codec, values, begin, end, unpackedBytes, elsewhere };
}
