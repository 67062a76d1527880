/**
 * Thrift's compact protocol, as much of it as parquet uses (github.com/apache/thrift, doc/specs/thrift-compact-protocol.md).
 * Fields nobody asks for are passed over without being kept, so that no bytes can ask for memory.
 */
import { type Cursor, damaged, take, takeByte } from './cursor';

/** Structs in structs: parquet needs six; more would only fill the stack. */
const DEPTH = 32;

const STOP = 0;
const TRUE = 1;
const FALSE = 2;
const BYTE = 3;
const I16 = 4;
const I32 = 5;
const I64 = 6;
const DOUBLE = 7;
const BINARY = 8;
const LIST = 9;
const SET = 10;
const MAP = 11;
const STRUCT = 12;
const UUID = 13;

/** One field, by its number in the definition. */
export interface Field {
  readonly id: number;
  readonly type: number;
}

/**
 * Goes through a struct. `read` takes the value of a field, or answers false and it is passed over.
 * @throws AmalgamError `DatasetInvalid`
 */
export function readStruct(cursor: Cursor, read: (field: Field) => boolean): void {
  let id = 0;
  for (;;) {
    const head = takeByte(cursor);
    const type = head & 15;
    if (type === STOP) return;
    id = head >> 4 === 0 ? signed(cursor) : id + (head >> 4);
    if (!read({ id, type })) skip(cursor, type, 0);
  }
}

/** Goes through a list of structs. */
export function readStructs(cursor: Cursor, field: Field, read: () => void): void {
  const { elements, count } = listHead(cursor, field);
  if (count > 0 && elements !== STRUCT) throw damaged(cursor, 'a list has elements of the wrong type');
  for (let i = 0; i < count; i++) read();
}

/** A list of texts. */
export function readTexts(cursor: Cursor, field: Field): string[] {
  const { elements, count } = listHead(cursor, field);
  const texts: string[] = [];
  for (let i = 0; i < count; i++) texts.push(readText(cursor, { id: field.id, type: elements }));
  return texts;
}

/** An integer of at most 53 bits. */
export function readInteger(cursor: Cursor, { type }: Field): number {
  if (type === BYTE) return (takeByte(cursor) << 24) >> 24;
  if (type !== I16 && type !== I32 && type !== I64) throw damaged(cursor, 'a number is missing');
  return signed(cursor);
}

/** An integer that counts something. */
export function readCount(cursor: Cursor, field: Field): number {
  const count = readInteger(cursor, field);
  if (count < 0) throw damaged(cursor, `a count is negative: ${count}`);
  return count;
}

export function readBoolean(cursor: Cursor, { type }: Field): boolean {
  if (type !== TRUE && type !== FALSE) throw damaged(cursor, 'a boolean is missing');
  return type === TRUE;
}

export function readText(cursor: Cursor, { type }: Field): string {
  if (type !== BINARY) throw damaged(cursor, 'a string is missing');
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(take(cursor, varint(cursor)));
  } catch (cause) {
    throw damaged(cursor, 'a name is not a string', cause);
  }
}

/** Seven bits a byte, lowest first, as a number of at most 53 bits. */
export function varint(cursor: Cursor): number {
  let value = 0;
  for (let scale = 1; ; scale *= 128) {
    const byte = takeByte(cursor);
    value += (byte & 127) * scale;
    if (value > Number.MAX_SAFE_INTEGER) throw damaged(cursor, 'a number is too large');
    if (byte < 128) return value;
    if (scale > 2 ** 56) throw damaged(cursor, 'a number is cut off');
  }
}

/** 0, 1, 2, 3 … stand for 0, −1, 1, −2 … */
export function signed(cursor: Cursor): number {
  const value = varint(cursor);
  return value % 2 === 0 ? value / 2 : -(value + 1) / 2;
}

function listHead(cursor: Cursor, { type }: Field) {
  if (type !== LIST) throw damaged(cursor, 'a list is missing');
  return readListHead(cursor);
}

function readListHead(cursor: Cursor): { elements: number; count: number } {
  const head = takeByte(cursor);
  const count = head >> 4 === 15 ? varint(cursor) : head >> 4;
  return { elements: head & 15, count };
}

/** Every element of a list takes a byte at least, so no loop here is longer than the bytes there are. */
function skip(cursor: Cursor, type: number, depth: number): void {
  if (depth > DEPTH) throw damaged(cursor, 'its structs are nested too deep');
  switch (type) {
    case TRUE:
    case FALSE:
      return;
    case BYTE:
      take(cursor, 1);
      return;
    case I16:
    case I32:
    case I64:
      for (let i = 0; takeByte(cursor) >= 128; i++) if (i > 9) throw damaged(cursor, 'a number is cut off');
      return;
    case DOUBLE:
      take(cursor, 8);
      return;
    case BINARY:
      take(cursor, varint(cursor));
      return;
    case LIST:
    case SET: {
      const { elements, count } = readListHead(cursor);
      for (let i = 0; i < count; i++) skipElement(cursor, elements, depth);
      return;
    }
    case MAP: {
      const count = varint(cursor);
      const types = count > 0 ? takeByte(cursor) : 0;
      for (let i = 0; i < count; i++) {
        skipElement(cursor, types >> 4, depth);
        skipElement(cursor, types & 15, depth);
      }
      return;
    }
    case STRUCT:
      for (let head = takeByte(cursor); (head & 15) !== STOP; head = takeByte(cursor)) {
        if (head >> 4 === 0) signed(cursor);
        skip(cursor, head & 15, depth + 1);
      }
      return;
    case UUID:
      take(cursor, 16);
      return;
    default:
      throw damaged(cursor, `a field is of the unknown type ${type}`);
  }
}

/** Skips an element of a list, in which a boolean takes a byte. */
function skipElement(cursor: Cursor, type: number, depth: number): void {
  skip(cursor, type === TRUE || type === FALSE ? BYTE : type, depth + 1);
}
