import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { bufferSource } from '../sources/buffer-source';
import { readRecords } from './parquet-file';
import type { Row } from './rows';

const fixture = (name: string) =>
  new Uint8Array(readFileSync(new URL(`../../e2e/fixtures/tasks/${name}`, import.meta.url)));
// written together with the parquet files by pyarrow
const rows = JSON.parse(new TextDecoder().decode(fixture('nested.json'))) as Row[];

async function readAll(bytes: Uint8Array<ArrayBuffer>): Promise<Row[]> {
  const all: Row[] = [];
  for await (const group of readRecords(bufferSource(bytes, 'a.parquet'), 'a.parquet')) all.push(...group);
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
