import { describe, expect, it } from 'vitest';
import { bestOf, formatRow, HEADER, type Row } from './rows';

const ROW: Row = {
  name: 'shape, ties, 2 models',
  way: 'command',
  engine: 'cpu (WebAssembly)',
  seconds: 8,
  floor: { what: 'bytes', seconds: 2 },
  bounds: [],
  stages: { read: 1, upload: 0, compute: 6, readback: 0.5, write: 2.5 },
  bytes: 4e9,
  user: 11,
  system: 1,
  memory: 600 * 2 ** 20,
  threads: [],
  output: '',
};

const cells = (line: string) =>
  line
    .split('|')
    .slice(1, -1)
    .map((cell) => cell.trim());

/** The line by the heads of its columns. */
function read(line: string): Record<string, string> {
  const [heads = ''] = HEADER.split('\n');
  expect(cells(line)).toHaveLength(cells(heads).length);
  return Object.fromEntries(cells(heads).map((head, i) => [head, cells(line)[i]!]));
}

describe('rows of the benchmark', () => {
  it('says ratios to the floor and to mergekit, rates and shares', () => {
    expect(read(formatRow(ROW, 100, 2))).toMatchObject({
      way: 'command, local folders',
      'floor s': '2.00',
      'merge s': '8.00',
      ratio: '4.00',
      '× mergekit': '12.50 (100.00 s)',
      'MB/s': '500',
      readback: '0.500',
      'stages / wall': '125 %',
      MiB: '600',
      bound: 'processor time on 2 cores: 6.00 s, 75 %',
    });
  });

  it('leaves cells empty where nothing was measured', () => {
    const { stages: _, ...silent } = ROW;
    const line = read(formatRow(silent, undefined, 2));
    expect([line['× mergekit'], line.read, line['stages / wall']]).toEqual(['', '', '']);
  });

  it('names the longest bound, and what a floor consists of', () => {
    const copy = { what: 'the folder’s own copy', seconds: 7 };
    const products = { what: 'products', seconds: 1 };
    const line = read(formatRow({ ...ROW, floor: products, bounds: [copy] }, undefined, 2));
    expect(line.bound).toBe('the folder’s own copy: 7.00 s, 88 %');
    expect(line['floor s']).toBe('1.00 (products)');
  });

  it('takes the quickest round, the lowest floor and the most memory', () => {
    const slow = { ...ROW, seconds: 9, floor: { what: 'bytes', seconds: 1.5 }, memory: 2 ** 30 };
    expect(bestOf([slow, ROW])).toEqual({ ...ROW, floor: slow.floor, memory: 2 ** 30 });
  });
});
