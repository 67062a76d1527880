import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { openParquet, type Row } from './parquet';

const fixture = (name: string) =>
  new Uint8Array(readFileSync(new URL(`../../e2e/fixtures/tasks/${name}`, import.meta.url)));
// written together with the parquet files by pyarrow
const rows = JSON.parse(new TextDecoder().decode(fixture('nested.json'))) as Row[];

/** Rows of a file, all columns by default, and how many came at once. */
async function readAll(bytes: Uint8Array<ArrayBuffer>, columns?: string[]): Promise<Row[]> {
  const file = await openParquet('a.parquet', bytes.length, async (begin, end) => bytes.slice(begin, end));
  file.select(columns ?? file.columns.all, 1e6);
  const all: Row[] = [];
  for (let part = await file.next(); part.length > 0; part = await file.next()) all.push(...part);
  return all;
}

describe('parquet rows', () => {
  test.each(['nested.parquet', 'nested-pages2.parquet'])(
    '%s: lists, structs, numbers and what is left out, as they were written; timestamps too, as numbers',
    async (name) => {
      const all = await readAll(fixture(name));
      expect(all.map(({ when, ...row }) => row)).toEqual(rows);
      expect(all[0]!.when).toBe(0);
    },
  );

  test('only the columns that are asked for are read', async () => {
    const bytes = fixture('nested.parquet');
    const [name] = Object.keys(rows[0]!);
    let read = 0;
    const file = await openParquet('a.parquet', bytes.length, async (begin, end) => {
      read += end - begin;
      return bytes.slice(begin, end);
    });
    const footer = read;
    file.select([name!], 1e6);
    const all: Row[] = [];
    for (let part = await file.next(); part.length > 0; part = await file.next()) all.push(...part);
    expect(all).toEqual(rows.map((row) => ({ [name!]: row[name!] })));
    expect(read - footer).toBeLessThan(bytes.length / 4);
  });

  test('a damaged file is refused, wherever a byte of its pages is wrong', async () => {
    const bytes = fixture('nested.parquet');
    let refused = 0;
    for (let at = 4; at < bytes.length; at += 97) {
      const copy = bytes.slice();
      copy[at]! ^= 0x55;
      await readAll(copy).catch((thrown: { code?: string }) => {
        expect(['DatasetInvalid', 'NotUtf8', 'LimitExceeded', 'DatasetUnsupported']).toContain(thrown.code);
        refused++;
      });
    }
    expect(refused).toBeGreaterThan(20);
  });
});

/** Thrift's compact protocol: fields by their numbers, of numbers (I32), texts, structs and lists of those. */
type Thrift = number | string | Uint8Array | Thrift[] | { [field: number]: Thrift } | { claims: number };
const varint = (value: number): number[] =>
  value < 128 ? [value] : [(value % 128) + 128, ...varint(Math.floor(value / 128))];
const typeOf = (value: Thrift) =>
  typeof value === 'number'
    ? 5
    : typeof value === 'string'
      ? 8
      : value instanceof Uint8Array
        ? 8
        : isList(value)
          ? 9
          : 12;
const isList = (value: Thrift) => Array.isArray(value) || (typeof value === 'object' && 'claims' in value);
function encode(value: Thrift): number[] {
  if (typeof value === 'number') return varint(value * 2);
  if (typeof value === 'string') return encode(new TextEncoder().encode(value));
  if (value instanceof Uint8Array) return [...varint(value.length), ...value];
  if (Array.isArray(value))
    return [0xf0 + typeOf(value[0] ?? 0), ...varint(value.length), ...value.flatMap(encode)];
  if ('claims' in value) return [0xf9, ...varint(value.claims)];
  const fields = Object.entries(value).flatMap(([id, inner]) => [
    typeOf(inner),
    ...varint(Number(id) * 2),
    ...encode(inner),
  ]);
  return [...fields, 0];
}

const [BYTE_ARRAY, UTF8] = [6, 0];
/** A file with one column of texts in one row group of one page. */
function file({
  rows: count = 1,
  page = {},
  body = new Uint8Array(8),
  schema,
}: {
  rows?: number;
  page?: { values?: number; unpacked?: number; encoding?: number };
  body?: Uint8Array;
  schema?: Thrift[];
}): Uint8Array<ArrayBuffer> {
  const { values = count, unpacked = body.length, encoding = 0 } = page;
  const head = encode({ 1: 0, 2: unpacked, 3: body.length, 5: { 1: values, 2: encoding, 3: 3, 4: 3 } });
  const length = head.length + body.length;
  const chunk = { 1: BYTE_ARRAY, 2: [encoding], 3: ['t'], 4: 0, 5: count, 6: length, 7: length, 9: 4 };
  const own = schema ?? [
    { 4: 'root', 5: 1 },
    { 1: BYTE_ARRAY, 3: 0, 4: 't', 6: UTF8 },
  ];
  const group = { 1: [{ 2: 4, 3: chunk }], 2: length, 3: count };
  const footer = encode({ 1: 1, 2: own, 3: count, 4: [group] });
  const mark = [...'PAR1'].map((c) => c.charCodeAt(0));
  const size = [0, 8, 16, 24].map((shift) => (footer.length >> shift) & 255);
  const parts = [mark, head, body, footer, size, mark].map((part) => new Uint8Array(part));
  return new Uint8Array(Buffer.concat(parts));
}

describe('R59: what a file claims and does not hold is refused before it is made', () => {
  test('a sound one is read', async () => {
    expect(await readAll(file({ body: new Uint8Array([2, 0, 0, 0, 104, 105]) }))).toEqual([{ t: 'hi' }]);
  });

  const deep = Array.from({ length: 5000 }, () => ({ 3: 0, 4: 'g', 5: 1 }));
  const shared = new Uint8Array([
    // prefix lengths: blocks of 128 in 4, 1000 values, first 0, then deltas of 0x7fffff at no bits
    ...[128, 1, 4, 232, 7, 0, ...varint(0x7fffff * 2), 0, 0, 0, 0],
    ...Array.from({ length: 400 }, () => 0),
  ]);
  test.each<[string, Uint8Array<ArrayBuffer>]>([
    ['fifty million rows', file({ rows: 5e7 })],
    ['a page of fifty million values', file({ rows: 5e7, page: { values: 5e7 } })],
    ['a page that unpacks to a gigabyte', file({ page: { unpacked: 1 << 30 } })],
    [
      '200 000 columns',
      file({
        schema: [
          { 4: 'root', 5: 200_000 },
          ...Array.from({ length: 200_000 }, (_, i) => ({ 1: BYTE_ARRAY, 3: 0, 4: `c${i}` })),
        ],
      }),
    ],
    [
      'columns in columns by the thousand',
      file({ schema: [{ 4: 'root', 5: 1 }, ...deep, { 1: BYTE_ARRAY, 4: 't' }] }),
    ],
    [
      'lists of thirty million in lists',
      file({ schema: [{ 4: 'root', 20: { claims: 3e7 }, 21: { claims: 3e7 } }] }),
    ],
    ['texts that share a gigabyte', file({ rows: 1000, page: { encoding: 7 }, body: shared })],
  ])('%s', async (_, bytes) => {
    const before = process.memoryUsage();
    await expect(readAll(bytes)).rejects.toMatchObject({
      code: expect.stringMatching(/LimitExceeded|DatasetInvalid/),
    });
    const { rss } = process.memoryUsage();
    expect(rss - before.rss).toBeLessThan(200 << 20);
  });

  test('a row that is too large has no values; many small ones come in parts', async () => {
    const count = 25_000;
    const body = new Uint8Array(count * 5).map((__, i) => (i % 5 === 0 ? 1 : i % 5 === 4 ? 120 : 0));
    const bytes = file({ rows: count, body });
    const opened = await openParquet('a', bytes.length, async (begin, end) => bytes.slice(begin, end));
    opened.select(['t'], 10);
    expect((await opened.next()).length).toBe(10_000);
    expect(opened.columns).toEqual({ all: ['t'], texts: ['t'], messages: [], rows: count });
    const long = new Uint8Array(9_000_004).fill(120);
    long.set([0x40, 0x54, 0x89, 0], 0);
    expect(await readAll(file({ body: long }))).toEqual([{ t: 'x'.repeat(1e6) }]);
  });
});
