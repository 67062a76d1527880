/** Pages of a column: their heads (parquet.thrift, PageHeader), and the texts in them. */
import { type Cursor, damaged, take, takeByte, takeUint32, tooLarge } from './cursor';
import { deltaLengthValues, deltaValues, plainValues, runLengthValues } from './parquet-values';
import type { RowTexts } from './row-texts';
import { type Field, readBoolean, readCount, readStruct } from './thrift';

export interface PageHead {
  kind: 'data' | 'data2' | 'dictionary' | 'index';
  /** Bytes behind the head, and how many they become. */
  packedBytes: number;
  unpackedBytes: number;
  /** Values, those left out counted. */
  values: number;
  encoding: number;
  /** How the marks for values left out are encoded; `data` only. */
  levelEncoding: number;
  /** Bytes of the marks in front of the values, which are never packed; `data2` only. */
  levelBytes: number;
  repetitionBytes: number;
  /** False when the values are not packed though the column has a codec; `data2` only. */
  isPacked: boolean;
}

/** A page with more values than this holds no text to speak of, and a few bytes can promise any number. */
const PAGE_VALUES = 1 << 20;

/** Numbers of parquet.thrift. */
const KINDS = ['data', 'index', 'dictionary', 'data2'] as const;
const PLAIN = 0;
const PLAIN_DICTIONARY = 2;
const RLE = 3;
const BIT_PACKED = 4;
const DELTA_LENGTH_BYTE_ARRAY = 6;
const DELTA_BYTE_ARRAY = 7;
const RLE_DICTIONARY = 8;

/** @throws AmalgamError `DatasetInvalid` */
export function readPageHead(cursor: Cursor): PageHead {
  const head: Partial<PageHead> = {};
  let kind: PageHead['kind'] | undefined;
  /** The part of the head that belongs to its kind, by its number. */
  let part = 0;
  readStruct(cursor, (field) => {
    if (field.id === 1) kind = KINDS[readCount(cursor, field)];
    else if (field.id === 2) head.unpackedBytes = readCount(cursor, field);
    else if (field.id === 3) head.packedBytes = readCount(cursor, field);
    else if (field.id === 5 || field.id === 7 || field.id === 8) {
      part = field.id;
      readStruct(cursor, (inner) => readPart(cursor, head, part, inner));
    } else return false;
    return true;
  });
  const { packedBytes, unpackedBytes, values = 0, encoding = PLAIN } = head;
  if (!kind || packedBytes === undefined || unpackedBytes === undefined) {
    throw damaged(cursor, 'a page header is incomplete');
  }
  if (kind !== 'index' && part !== { data: 5, dictionary: 7, data2: 8 }[kind]) {
    throw damaged(cursor, 'a page header is of the wrong type');
  }
  if (values > PAGE_VALUES) throw tooLarge(cursor.name, `a page of ${values} values`);
  const { levelEncoding = RLE, levelBytes = 0, repetitionBytes = 0, isPacked = true } = head;
  return {
    ...{ kind, packedBytes, unpackedBytes, values, encoding },
    ...{ levelEncoding, levelBytes, repetitionBytes, isPacked },
  };
}

function readPart(cursor: Cursor, head: Partial<PageHead>, part: number, field: Field): boolean {
  if (field.id === 1) head.values = readCount(cursor, field);
  else if (part === 8 && field.id === 4) head.encoding = readCount(cursor, field);
  else if (part === 8 && field.id === 5) head.levelBytes = readCount(cursor, field);
  else if (part === 8 && field.id === 6) head.repetitionBytes = readCount(cursor, field);
  else if (part === 8 && field.id === 7) head.isPacked = readBoolean(cursor, field);
  else if (part !== 8 && field.id === 2) head.encoding = readCount(cursor, field);
  else if (part === 5 && field.id === 3) head.levelEncoding = readCount(cursor, field);
  else return false;
  return true;
}

type Decode = (bytes: Uint8Array<ArrayBuffer>) => string;

/** The texts of a dictionary page. @param body unpacked */
export function dictionaryTexts(body: Cursor, head: PageHead, decode: Decode): string[] {
  if (head.encoding !== PLAIN && head.encoding !== PLAIN_DICTIONARY) throw unknown(body, head.encoding);
  return whole(body, plainValues(body, head.values)).map(decode);
}

/**
 * The texts of a data page.
 * @param body unpacked; of `data2` with its marks in front
 * @param optional rows may be without a value
 */
export function pageTexts(
  body: Cursor,
  head: PageHead,
  optional: boolean,
  dictionary: readonly string[] | undefined,
  decode: Decode,
): RowTexts {
  if (!optional) {
    if (head.kind === 'data2') take(body, head.repetitionBytes + head.levelBytes);
    return { texts: decodeValues(body, head.encoding, head.values, dictionary, decode) };
  }
  const present = presence(body, head);
  let count = 0;
  for (const mark of present) count += mark;
  return { texts: decodeValues(body, head.encoding, count, dictionary, decode), present };
}

/** For every row 1 where it has a value, else 0. */
function presence(body: Cursor, { kind, values, levelEncoding, levelBytes, repetitionBytes }: PageHead) {
  let marks: Uint32Array;
  if (kind === 'data2') {
    take(body, repetitionBytes);
    marks = runLengthValues({ ...body, bytes: take(body, levelBytes), at: 0 }, 1, values);
  } else if (levelEncoding === RLE) {
    marks = runLengthValues({ ...body, bytes: take(body, takeUint32(body)), at: 0 }, 1, values);
  } else if (levelEncoding === BIT_PACKED) {
    const packed = take(body, Math.ceil(values / 8));
    marks = Uint32Array.from({ length: values }, (_, i) => (packed[i >> 3]! >> (7 - (i & 7))) & 1);
  } else throw unknown(body, levelEncoding);
  for (const mark of marks) if (mark > 1) throw damaged(body, 'a page has the levels of a nested column');
  return marks;
}

function decodeValues(
  body: Cursor,
  encoding: number,
  count: number,
  dictionary: readonly string[] | undefined,
  decode: Decode,
): string[] {
  if (encoding !== PLAIN_DICTIONARY && encoding !== RLE_DICTIONARY) {
    return byteArrays(body, encoding, count).map(decode);
  }
  return dictionaryValues(body, count, dictionary);
}

/** Values of a page that names them by their places in the dictionary. */
export function dictionaryValues<T>(body: Cursor, count: number, dictionary: readonly T[] | undefined): T[] {
  if (count === 0) return [];
  if (!dictionary) throw damaged(body, 'a page needs a dictionary and there is none');
  return Array.from(runLengthValues(body, takeByte(body), count), (index) => {
    const value = dictionary[index];
    if (value === undefined) throw damaged(body, 'a page refers to a value that is not in its dictionary');
    return value;
  });
}

/** Byte arrays that stand in a page themselves. */
export function byteArrays(body: Cursor, encoding: number, count: number): Uint8Array<ArrayBuffer>[] {
  switch (encoding) {
    case PLAIN:
      return whole(body, plainValues(body, count));
    case DELTA_LENGTH_BYTE_ARRAY:
      return whole(body, deltaLengthValues(body, count));
    case DELTA_BYTE_ARRAY:
      return whole(body, deltaValues(body, count));
    default:
      throw unknown(body, encoding);
  }
}

/** Values that leave bytes over are not the ones that were written. */
function whole<T>(body: Cursor, values: T): T {
  if (body.at !== body.bytes.length) throw damaged(body, 'a page has bytes left after its values');
  return values;
}

function unknown(cursor: Cursor, encoding: number) {
  return damaged(cursor, `its values use the unknown encoding ${encoding}`);
}
