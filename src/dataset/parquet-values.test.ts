/** The examples of parquet's Encodings.md, and bytes that promise more than they hold. */
import { describe, expect, test } from 'vitest';
import { AmalgamError } from '../errors';
import type { Cursor } from './cursor';
import { type PageHead, pageTexts, readPageHead } from './parquet-page';
import { deltaLengthValues, deltaValues, plainValues, runLengthValues } from './parquet-values';
import { readStruct, varint } from './thrift';

const at = (...bytes: number[]): Cursor => ({ bytes: Uint8Array.from(bytes), at: 0, name: 'a.parquet' });
const texts = (values: Uint8Array[]) => values.map((value) => new TextDecoder().decode(value));
const utf8 = (text: string) => [...new TextEncoder().encode(text)];

describe('as they are written', () => {
  test('0 to 7 packed in three bits each, and runs of equal numbers', () => {
    const packed = [3, 0x88, 0xc6, 0xfa];
    expect([...runLengthValues(at(...packed), 3, 8)]).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
    expect([...runLengthValues(at(...packed, 6, 5), 3, 11)].slice(7)).toEqual([7, 5, 5, 5]);
    expect([...runLengthValues(at(4, 0x34, 0x12), 16, 2)]).toEqual([0x1234, 0x1234]);
  });

  test('lengths 7, 5, 3, 1, 2 by their differences', () => {
    // blocks of 128 in 4 parts, 5 numbers, the first 7; least difference −2; two bits each in the first part
    const lengths = [0x80, 1, 4, 5, 14, 3, 2, 0, 0, 0, 0xc0, 0, 0, 0, 0, 0, 0, 0];
    const values = deltaLengthValues(at(...lengths, ...utf8('sevens!five!treo12')), 5);
    expect(texts(values)).toEqual(['sevens!', 'five!', 'tre', 'o', '12']);
  });

  test('axis and axle, which share two characters', () => {
    const shared = [0x80, 1, 4, 2, 0, 4, 0, 0, 0, 0];
    const lengths = [0x80, 1, 4, 2, 8, 3, 0, 0, 0, 0];
    expect(texts(deltaValues(at(...shared, ...lengths, ...utf8('axisle')), 2))).toEqual(['axis', 'axle']);
  });
});

describe('what promises more than there is', () => {
  const refused = (act: () => unknown) => {
    expect(act).toThrow(AmalgamError);
    expect(act).toThrow(/^a\.parquet cannot be read as parquet: /);
  };

  test('a run of two thousand million ends where the page does', () => {
    expect(runLengthValues(at(0xfe, 0xff, 0xff, 0xff, 0x0f, 1), 1, 5)).toEqual(new Uint32Array(5).fill(1));
  });

  test.each<[string, () => unknown]>([
    ['runs that hold nothing', () => runLengthValues(at(...new Array(50).fill(0)), 8, 5)],
    ['packed numbers that are not there', () => runLengthValues(at(3, 0xff), 3, 8)],
    ['numbers of 40 bits', () => runLengthValues(at(2, 0, 0, 0, 0, 0), 40, 1)],
    ['a thousand million values in a few bytes', () => plainValues(at(1, 0, 0, 0, 65), 1e9)],
    ['a value longer than its page', () => plainValues(at(255, 255, 255, 255, 65), 1)],
    ['a negative length', () => deltaLengthValues(at(0x80, 1, 4, 1, 5), 1)],
    ['parts of no values', () => deltaLengthValues(at(0, 4, 1, 0), 1)],
    ['parts of infinitely many', () => deltaLengthValues(at(0x80, 1, 0, 1, 0), 1)],
    ['sharing with nothing', () => deltaValues(at(0x80, 1, 4, 1, 2, 0x80, 1, 4, 1, 2, 65), 1)],
    ['a number without end', () => varint(at(...new Array(40).fill(128)))],
    ['a number of 60 bits', () => varint(at(...new Array(8).fill(255), 15))],
    ['structs in structs in structs', () => readStruct(at(...new Array(1e5).fill(0x1c)), () => false)],
    [
      'a list of ten thousand million',
      () => readStruct(at(0x19, 0xfc, 255, 255, 255, 255, 31, 0), () => false),
    ],
  ])('%s', (_, act) => {
    refused(act);
  });

  test('a page of 2³⁰ values', () => {
    const head = [0x15, 0, 0x15, 0, 0x15, 0, 0x2c, 0x15, 128, 128, 128, 128, 8, 0, 0];
    expect(() => readPageHead(at(...head))).toThrow('a.parquet has a page of 1073741824 values.');
  });

  test('60 kB of values, each of which adds three characters to the one before', () => {
    // 20 000 numbers that differ by `step`, which takes no bits beyond the least difference of each block
    const steps = (first: number, step: number) => [
      ...[0x80, 1, 4, 0xa0, 0x9c, 1, 2 * first],
      ...Array.from({ length: 157 }, () => [2 * step, 0, 0, 0, 0]).flat(),
    ];
    const bytes = [...steps(0, 3), ...steps(3, 0), ...new Array<number>(60_000).fill(65)];
    expect(() => deltaValues(at(...bytes), 20_000)).toThrow(/decompresses to more than/);
  });

  test('marks of a column inside a list', () => {
    const head: PageHead = {
      ...{ kind: 'data', packedBytes: 0, unpackedBytes: 0, values: 2, encoding: 0 },
      ...{ levelEncoding: 3, levelBytes: 0, repetitionBytes: 0, isPacked: true },
    };
    const body = at(2, 0, 0, 0, 4, 2, 1, 0, 0, 0, 65);
    refused(() => pageTexts(body, head, true, undefined, (bytes) => texts([bytes])[0]!));
  });
});
