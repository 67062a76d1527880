import { readFileSync } from 'node:fs';
import { gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { conversationLine } from '../formats/conversations';
import type { ByteSource } from '../sources/byte-source';
import { readText, type TextRange, textColumns } from './file-text';
import { textKind } from './text-kind';

const fixture = (name: string) =>
  new Uint8Array(readFileSync(new URL(`../../e2e/fixtures/dataset/${name}`, import.meta.url)));
// written together with the parquet files, by another program
const rows = JSON.parse(new TextDecoder().decode(fixture('rows.json'))) as {
  text: string[];
  title: (string | null)[];
};
const utf8 = (text: string) => new TextEncoder().encode(text);

/** A file that counts what is read of it. */
function counted(bytes: Uint8Array) {
  let read = 0;
  const source: ByteSource = {
    byteLength: bytes.length,
    async read(begin, end) {
      read += end - begin;
      return new Uint8Array(bytes.slice(begin, end));
    },
  };
  return { source, read: () => read };
}

const ALL: TextRange = { characters: 1e6 };
const take = (path: string, bytes: Uint8Array, range: Partial<TextRange> = {}) =>
  readText(counted(bytes).source, path, path, { ...ALL, ...range });

describe('parquet', () => {
  test.each(['plain', 'snappy', 'zstd', 'brotli-delta', 'gzip-lengths', 'lz4-pages2'])(
    '%s: the rows as they were written, joined by blank lines',
    async (codec) => {
      const bytes = fixture(`${codec}.parquet`);
      expect(await take('a.parquet', bytes)).toEqual({
        text: rows.text.join('\n\n'),
        column: 'text',
        rows: 40,
        empty: 0,
        whole: true,
      });
      const titles = rows.title.filter((title) => title !== null);
      expect(await take('a.parquet', bytes, { column: 'title' })).toEqual({
        text: titles.join('\n\n'),
        column: 'title',
        rows: 39,
        empty: 1,
        whole: true,
      });
    },
  );

  test('a few rows read the footer and one row group of one column', async () => {
    const bytes = fixture('snappy.parquet');
    const whole = counted(bytes);
    await readText(whole.source, 'a', 'a.parquet', ALL);
    const few = counted(bytes);
    const read = await readText(few.source, 'a', 'a.parquet', { ...ALL, rows: 5 });
    expect(read).toMatchObject({ text: rows.text.slice(0, 5).join('\n\n'), rows: 5, whole: false });
    const footer = new DataView(bytes.buffer).getUint32(bytes.length - 8, true);
    expect(few.read()).toBeLessThan(whole.read());
    expect(few.read() - footer).toBeLessThan((bytes.length - footer) / 2);
  });

  test('characters cut the text', async () => {
    const read = await take('a.parquet', fixture('plain.parquet'), { characters: 100 });
    expect(read.text).toBe(rows.text.join('\n\n').slice(0, 100));
    expect(read.whole).toBe(false);
  });

  test('its text columns, and what is none', async () => {
    const bytes = fixture('snappy.parquet');
    const { source } = counted(bytes);
    expect(await textColumns(source, 'a', 'a.parquet')).toEqual({
      columns: ['text', 'title'],
      conversations: null,
      rows: 40,
    });
    const missing = take('a.parquet', bytes, { column: 'body' });
    await expect(missing).rejects.toMatchObject({
      code: 'ColumnMissing',
      hint: expect.stringMatching(/“text”, “title”/),
    });
    for (const column of ['number', 'turns']) {
      await expect(take('a.parquet', bytes, { column })).rejects.toMatchObject({
        code: 'ColumnMissing',
        message: expect.stringContaining('does not hold text'),
      });
    }
  });

  test('damaged files are named, not read wrongly', async () => {
    const good = fixture('plain.parquet');
    const code = async (bytes: Uint8Array) =>
      take('a.parquet', bytes).then(
        () => 'read',
        (thrown: { code?: string }) => thrown.code,
      );
    expect(await code(good.slice(0, good.length - 1))).toBe('DatasetInvalid');
    expect(await code(good.slice(0, 8))).toBe('DatasetInvalid');
    const longFooter = good.slice();
    new DataView(longFooter.buffer).setUint32(good.length - 8, good.length, true);
    expect(await code(longFooter)).toBe('DatasetInvalid');
    const torn = fixture('zstd.parquet');
    torn.fill(255, 4, 400);
    expect(await code(torn)).toBe('DatasetInvalid');
    const pointer = utf8(
      `version https://git-lfs.github.com/spec/v1\noid sha256:${'0'.repeat(64)}\nsize 9\n`,
    );
    expect(await code(pointer)).toBe('LfsPointer');
    // “café” with its é made half a character
    const at = good.findIndex((byte, i) => byte === 0xc3 && good[i + 1] === 0xa9);
    const latin = good.slice();
    latin[at] = 0x65;
    expect(await code(latin)).toBe('NotUtf8');
  });

  test('half a kilobyte that promises four million rows without a value is given up', async () => {
    const bytes = fixture('no-values.parquet');
    expect(bytes.length).toBeLessThan(600);
    await expect(take('a.parquet', bytes)).rejects.toMatchObject({
      code: 'LimitExceeded',
      message: expect.stringContaining('rows without a value of “text”'),
    });
  });

  test('a codec that nobody unpacks is named', async () => {
    const bytes = fixture('snappy.parquet');
    // thrift, compact protocol: the codec of a column chunk is field 4, one i32; 1 is SNAPPY, 3 is LZO
    const footer = bytes.length - 8 - new DataView(bytes.buffer).getUint32(bytes.length - 8, true);
    const path = [0x19, 0x18, 0x04, ...utf8('text'), 0x15];
    for (let i = footer; i < bytes.length - path.length; i++) {
      if (path.every((byte, j) => bytes[i + j] === byte) && bytes[i + path.length] === 2)
        bytes[i + path.length] = 6;
    }
    await expect(take('a.parquet', bytes)).rejects.toMatchObject({
      code: 'DatasetUnsupported',
      message: expect.stringMatching(/LZO/),
    });
  });
});

describe('lines', () => {
  const file = '{"text":"one\\ntwo","id":1}\r\n\n{"text":null}\n{"id":3,"text":"drei ü"}\n';

  test.each([
    ['a.jsonl', utf8(file)],
    ['b.json', utf8(file)],
    ['c.jsonl.gz', new Uint8Array(gzipSync(file))],
  ])('%s: the text field of every row', async (path, bytes) => {
    expect(await take(path, bytes)).toEqual({
      text: 'one\ntwo\n\ndrei ü',
      column: 'text',
      rows: 2,
      empty: 1,
      whole: true,
    });
    expect((await take(path, bytes, { rows: 1 })).whole).toBe(false);
  });

  test('of a long file only the beginning is read', async () => {
    const { source, read } = counted(utf8('{"content":"abcdefgh"}\n'.repeat(100_000)));
    const got = await readText(source, 'a', 'a.jsonl', { rows: 3, characters: 1e6 });
    expect(got).toMatchObject({ text: Array(3).fill('abcdefgh').join('\n\n'), column: 'content', rows: 3 });
    expect(read()).toBe(1 << 18);
    expect(await textColumns(source, 'a', 'a.jsonl')).toEqual({
      columns: ['content'],
      conversations: null,
      rows: null,
    });
  });

  test('what is no row says where', async () => {
    const refused = async (text: string, range = {}) =>
      take('a.jsonl', utf8(text), range).then(
        () => null,
        (e) => e,
      );
    expect(await refused('{"text":"a"}\n{"text":')).toMatchObject({
      code: 'JsonInvalid',
      message: expect.stringMatching(/line 2/),
    });
    expect(await refused('[{"text":"a"}]')).toMatchObject({ code: 'DatasetUnsupported' });
    expect(await refused('[\n  {"text":"a"}]')).toMatchObject({ code: 'DatasetUnsupported' });
    expect(await refused('{"a":"x","b":"y"}')).toMatchObject({
      code: 'ColumnMissing',
      hint: expect.stringMatching(/“a”, “b”/),
    });
    expect(await refused('{"text":"a"}', { column: 'toString' })).toMatchObject({ code: 'ColumnMissing' });
    expect(await refused('\n \n')).toMatchObject({ code: 'TextEmpty' });
    expect(await refused('{"text":" "}')).toMatchObject({ code: 'TextEmpty' });
  });

  test('a mark in front, NaN as Python writes it, and a row without a text do not end the reading', async () => {
    const odd =
      '\uFEFF{"text":"a \\"NaN","loss":NaN}\n{"text":5,"loss":-Infinity}\n{"text":"b","loss":[Infinity]}';
    expect(await take('a.jsonl', utf8(odd))).toMatchObject({ text: 'a "NaN\n\nb', rows: 2, empty: 1 });
    const long = `{"text":"${'x'.repeat(9_000_000)}"}`;
    await expect(take('a.jsonl', utf8(long))).rejects.toMatchObject({ code: 'LimitExceeded' });
  });
});

describe('text', () => {
  test('as it stands, cut between characters', async () => {
    const got = await take('a.txt', utf8('\uFEFFabc𝄞def'), { characters: 4 });
    expect(got).toEqual({ text: 'abc', column: null, rows: 0, empty: 0, whole: false });
    expect(await take('a.txt.gz', new Uint8Array(gzipSync('abc')))).toMatchObject({
      text: 'abc',
      whole: true,
    });
  });

  test('a character may stand across two pieces', async () => {
    const text = `${'x'.repeat((1 << 18) - 1)}é and on`;
    expect((await take('a.txt', utf8(text))).text).toBe(text);
  });

  test('bytes of another encoding, torn gzip and pointers are named', async () => {
    const latin = new Uint8Array([0x63, 0x61, 0x66, 0xe9]);
    await expect(take('a.txt', latin)).rejects.toMatchObject({ code: 'NotUtf8' });
    await expect(take('a.txt.gz', utf8('no gzip'))).rejects.toMatchObject({ code: 'DatasetInvalid' });
    await expect(take('a.txt', utf8(''))).rejects.toMatchObject({ code: 'TextEmpty' });
    const pointer = utf8('version https://git-lfs.github.com/spec/v1\n');
    await expect(take('a.txt', pointer)).rejects.toMatchObject({ code: 'LfsPointer' });
    await expect(take('a.csv', utf8('a,b'))).rejects.toMatchObject({ code: 'DatasetUnsupported' });
  });
});

test('kinds go by names; files about the repo are no data', () => {
  expect(textKind('data/train-00000-of-00002.parquet')).toEqual({ format: 'parquet', gzip: false });
  expect(textKind('en/c4-train.00000.json.gz')).toEqual({ format: 'lines', gzip: true });
  for (const path of [
    'README.md',
    'dataset_infos.json',
    'a.csv',
    'a.parquet.gz',
    'a.json.zst',
    'LICENSE.txt',
  ]) {
    expect(textKind(path), path).toBeUndefined();
  }
});

describe('conversations', () => {
  const written = JSON.parse(new TextDecoder().decode(fixture('messages.json'))) as (object[] | null)[];
  const lines = written
    .filter((messages) => messages !== null)
    .map((messages) => conversationLine(messages as { role: string; content: string }[]));

  test('of nested parquet, as they were written, a row without one left out', async () => {
    const bytes = fixture('messages.parquet');
    expect(await textColumns(counted(bytes).source, 'a', 'a.parquet')).toEqual({
      columns: ['prompt', 'prompt_id'],
      conversations: 'messages',
      rows: 12,
    });
    expect(await take('a.parquet', bytes)).toEqual({
      text: lines.join('\n'),
      column: 'messages',
      rows: 11,
      empty: 1,
      whole: true,
    });
    expect((await take('a.parquet', bytes, { column: 'prompt', rows: 1 })).text).toMatch(/^Question 0/);
  });

  test('stay whole, however few characters are wanted', async () => {
    const few = await take('a.parquet', fixture('messages.parquet'), { characters: lines[0]!.length + 1 });
    expect(few).toMatchObject({ text: lines.slice(0, 2).join('\n'), rows: 2, whole: false });
  });

  test('of lines: messages, ShareGPT, instructions', async () => {
    const hello = '[{"role":"user","content":"Hello"},{"role":"assistant","content":"Hi"}]';
    const share = '[{"from":"human","value":"Hello"},{"from":"gpt","value":"Hi"}]';
    for (const row of [
      `{"messages":${hello}}`,
      `{"id":1,"conversations":${share}}`,
      '{"instruction":"Hello","input":"","output":"Hi"}',
    ]) {
      const read = await take('a.jsonl', utf8(`${row}\n${row}\n`));
      expect(read).toMatchObject({ text: `${hello}\n${hello}`, rows: 2 });
    }
  });
});
