/**
 * The values of one stored column of a parquet file, and the rows they stand in: levels say how deep a value is defined and
 * where a list goes on (Melnik et al. 2010, Dremel; github.com/apache/parquet-format, Nested Encoding).
 */
import { type Cursor, damaged, take, takeUint32, tooLarge } from './cursor';
import type { LeafNode, ParquetLeaf } from './parquet-footer';
import { byteArrays, dictionaryValues, type PageHead } from './parquet-page';
import { runLengthValues } from './parquet-values';
import type { Row, RowValue } from './rows';

/** Values of one row group's column, the dictionary's counted once. */
const CHUNK_VALUES = 1 << 24;

const PLAIN = 0;
const PLAIN_DICTIONARY = 2;
const RLE = 3;
const RLE_DICTIONARY = 8;
const BOOLEAN = 0;

/** Bytes and reading of the fixed types: INT32, INT64, FLOAT, DOUBLE. */
const FIXED: Record<number, { bytes: number; read(view: DataView, at: number): number }> = {
  1: { bytes: 4, read: (view, at) => view.getInt32(at, true) },
  2: { bytes: 8, read: (view, at) => Number(view.getBigInt64(at, true)) },
  4: { bytes: 4, read: (view, at) => view.getFloat32(at, true) },
  5: { bytes: 8, read: (view, at) => view.getFloat64(at, true) },
};

/** What was read of a column of one row group. */
interface LeafColumn {
  /** Per entry, where the column is repeated or optional anywhere. */
  repetitions: number[];
  definitions: number[];
  /** Those that are there. */
  values: RowValue[];
  entries: number;
}

export class LeafReader {
  readonly isNested: boolean;
  private readonly deepest: number;
  private readonly repeated: number;

  private constructor(
    readonly leaf: ParquetLeaf,
    private readonly name: string,
    private readonly decode: (bytes: Uint8Array<ArrayBuffer>) => string,
  ) {
    this.deepest = leaf.nodes.filter(({ repetition }) => repetition !== 'required').length;
    this.repeated = leaf.nodes.filter(({ repetition }) => repetition === 'repeated').length;
    this.isNested = this.repeated > 0;
  }

  /** A reader, or undefined for values of a kind that is not read. */
  static of(leaf: ParquetLeaf, name: string, decode: (bytes: Uint8Array<ArrayBuffer>) => string) {
    const known = leaf.isText || leaf.type === BOOLEAN || FIXED[leaf.type] !== undefined;
    return known ? new LeafReader(leaf, name, decode) : undefined;
  }

  begin(): LeafColumn & { add(head: PageHead, body: Cursor): void } {
    const column: LeafColumn = { repetitions: [], definitions: [], values: [], entries: 0 };
    let dictionary: RowValue[] | undefined;
    return Object.assign(column, {
      add: (head: PageHead, body: Cursor) => {
        if (head.kind === 'dictionary') {
          dictionary = this.values(body, PLAIN, head.values, undefined);
          return;
        }
        column.entries += head.values;
        if (column.entries > CHUNK_VALUES) throw tooLarge(this.name, `a column of ${column.entries} values`);
        const { repetitions, definitions } = this.levels(body, head);
        for (const level of repetitions) column.repetitions.push(level);
        for (const level of definitions) column.definitions.push(level);
        const there = this.deepest === 0 ? head.values : definitions.filter((d) => d === this.deepest).length;
        for (const value of this.values(body, head.encoding, there, dictionary)) column.values.push(value);
      },
    });
  }

  private levels(body: Cursor, head: PageHead): { repetitions: Uint32Array; definitions: Uint32Array } {
    const read = (most: number, bytes: number | undefined) => {
      if (most === 0) {
        if (bytes !== undefined) take(body, bytes);
        return new Uint32Array(0);
      }
      if (head.kind === 'data' && head.levelEncoding !== RLE)
        throw damaged(body, 'its levels use a deprecated encoding');
      const part: Cursor = { ...body, bytes: take(body, bytes ?? takeUint32(body)), at: 0 };
      const levels = runLengthValues(part, 32 - Math.clz32(most), head.values);
      if (levels.some((level) => level > most)) throw damaged(body, 'a level is deeper than its column');
      return levels;
    };
    const own = head.kind === 'data2';
    return {
      repetitions: read(this.repeated, own ? head.repetitionBytes : undefined),
      definitions: read(this.deepest, own ? head.levelBytes : undefined),
    };
  }

  private values(
    body: Cursor,
    encoding: number,
    count: number,
    dictionary: RowValue[] | undefined,
  ): RowValue[] {
    if (encoding === PLAIN_DICTIONARY || encoding === RLE_DICTIONARY) {
      return dictionaryValues(body, count, dictionary);
    }
    const { type } = this.leaf;
    if (this.leaf.isText) return byteArrays(body, encoding, count).map(this.decode);
    if (type === BOOLEAN && encoding === RLE) {
      take(body, 4);
      return Array.from(runLengthValues(body, 1, count), (bit) => bit === 1);
    }
    if (encoding !== PLAIN) throw damaged(body, `its values use the unknown encoding ${encoding}`);
    if (type === BOOLEAN) {
      const packed = take(body, Math.ceil(count / 8));
      return Array.from({ length: count }, (_, i) => ((packed[i >> 3]! >> (i & 7)) & 1) === 1);
    }
    const { bytes, read } = FIXED[type]!;
    const all = take(body, count * bytes);
    const view = new DataView(all.buffer, all.byteOffset, all.byteLength);
    return Array.from({ length: count }, (_, i) => read(view, i * bytes));
  }
}

/** Puts the values of a column into its rows. @throws AmalgamError `DatasetInvalid` when there are fewer or more rows */
export function assembleRows({ nodes }: ParquetLeaf, column: LeafColumn, rows: Row[], name: string): void {
  const { repetitions, definitions, values, entries } = column;
  const deepest = nodes.filter(({ repetition }) => repetition !== 'required').length;
  const definition = (i: number) => (definitions.length > 0 ? definitions[i]! : deepest);
  const repetition = (i: number) => (repetitions.length > 0 ? repetitions[i]! : 0);
  let next = 0;
  let at = 0;

  /** The value of nodes[n …] out of the entries [from, to). */
  const build = (n: number, from: number, to: number, defined: number, repeated: number): RowValue => {
    const node = nodes[n];
    if (!node) return values[next++]!;
    if (node.repetition !== 'required' && definition(from) <= defined) {
      return node.repetition === 'repeated' ? [] : null;
    }
    if (node.repetition !== 'repeated') {
      return field(
        nodes[n + 1],
        build(n + 1, from, to, defined + (node.repetition === 'optional' ? 1 : 0), repeated),
      );
    }
    const list: RowValue[] = [];
    for (let begin = from; begin < to; ) {
      let end = begin + 1;
      while (end < to && repetition(end) > repeated + 1) end++;
      list.push(field(nodes[n + 1], build(n + 1, begin, end, defined + 1, repeated + 1)));
      begin = end;
    }
    return list;
  };

  for (const row of rows) {
    if (at >= entries) throw damaged({ name }, 'a column has fewer values than rows');
    let end = at + 1;
    while (end < entries && repetition(end) > 0) end++;
    const top = nodes[0]!;
    const value = build(0, at, end, 0, 0);
    row[top.name] = top.name in row ? joined(row[top.name]!, value) : value;
    at = end;
  }
  if (at !== entries) throw damaged({ name }, 'a column has more values than rows');
}

/** A value as the field of what holds it, where it is one. */
function field(node: LeafNode | undefined, value: RowValue): RowValue {
  return node?.isField ? { [node.name]: value } : value;
}

/** Two columns of one struct, or of the structs of one list, put together. */
function joined(a: RowValue, b: RowValue): RowValue {
  if (Array.isArray(a) && Array.isArray(b)) return a.map((value, i) => joined(value, b[i] ?? null));
  if (isRecord(a) && isRecord(b)) {
    const both: { [name: string]: RowValue } = { ...a };
    for (const [name, value] of Object.entries(b)) both[name] = name in a ? joined(a[name]!, value) : value;
    return both;
  }
  return a ?? b;
}

function isRecord(value: RowValue): value is { [field: string]: RowValue } {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
