import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { production } from '../syntax.test.support';
import {
  counted,
  formatAbout,
  formatBytes,
  formatCount,
  formatCounted,
  formatLeft,
  formatParameters,
  formatPercent,
  formatReal,
  formatSeconds,
  formatSetting,
  formatShape,
  formatWeightFiles,
  NBSP,
} from './quantity';

/** Readable in a test: every kind of space becomes a plain one. */
const plain = (text: string) => text.replace(/[\u00a0\u202f]/g, ' ');

describe('quantities', () => {
  test.each([
    [0, '0'],
    [999, '999'],
    [44032, '44 032'],
    [1238656, '1 238 656'],
    [-1500, '−1 500'],
  ])('count %d', (n, text) => expect(plain(formatCount(n))).toBe(text));

  test.each([
    [0, '0 B'],
    [344, '344 B'],
    [999, '999 B'],
    [1000, '1.00 kB'],
    [2_540_000, '2.54 MB'],
    [15_300_000_000, '15.3 GB'],
    [812_000_000, '812 MB'],
    [999_600, '1.00 MB'],
    [99_960, '100 kB'],
  ])('bytes %d', (n, text) => expect(plain(formatBytes(n))).toBe(text));

  test.each([
    [120, '120'],
    [112_128, '112 K'],
    [1_238_656, '1.24 M'],
    [7_615_616_512, '7.62 B'],
  ])('parameters %d', (n, text) => expect(plain(formatParameters(n))).toBe(text));

  test.each([
    [0, '0.0 %'],
    [0.801, '80.1 %'],
    [1, '100.0 %'],
    [0.00001, '<0.1 %'],
    [0.99999, '>99.9 %'],
    [-0.05, '−5.0 %'],
  ])('percent %d', (n, text) => expect(plain(formatPercent(n))).toBe(text));

  test.each([
    [0, '0'],
    [0.0031, '0.00310'],
    [12.44, '12.4'],
    [12345.6, '12346'],
    [0.00000012, '1.20e−7'],
    [-0.5, '−0.500'],
  ])('real %d', (n, text) => expect(formatReal(n)).toBe(text));

  test.each([
    [0.084, '84 ms'],
    [0.9996, '1.0 s'],
    [3.21, '3.2 s'],
    [59.96, '1 min 00 s'],
    [80, '1 min 20 s'],
    [7500, '2 h 05 min'],
  ])('seconds %d', (n, text) => expect(plain(formatSeconds(n))).toBe(text));

  test('files with weights, GGUF apart', () => {
    expect(formatWeightFiles(['config.json', 'a.safetensors'])).toBe(`1${NBSP}shard`);
    expect(formatWeightFiles(['a.safetensors', 'b.safetensors', 'm-F16.gguf'])).toBe(
      `2${NBSP}shards and a GGUF file`,
    );
    expect(formatWeightFiles(['m-F16.gguf', 'README.md'])).toBe('a GGUF file');
  });

  test('time left, shape, counted, setting', () => {
    // a time that is left is never none
    expect([0, 9.1, 12, 56, 130, 3765].map((s) => plain(formatAbout(s)))).toEqual([
      'about 1 s',
      'about 10 s',
      'about 12 s',
      'about 1 min',
      'about 3 min',
      'about 1 h 03 min',
    ]);
    expect([null, 0, 0.2, 56].map((s) => plain(formatLeft(s)))).toEqual([
      '',
      '',
      'about 1 s left',
      'about 1 min left',
    ]);
    expect(plain(formatShape([128, 352]))).toBe('128 × 352');
    expect(formatShape([])).toBe('scalar');
    expect(plain(formatCounted(1, 'tensor'))).toBe('1 tensor');
    expect(plain(formatCounted(57, 'tensor'))).toBe('57 tensors');
    expect(formatSetting(0.2, 0.01)).toBe('0.20');
    expect(formatSetting(0.123, 0.01)).toBe('0.123');
    expect(formatSetting(7, undefined)).toBe('7');
    expect(formatSetting(1e-5, 0.0001)).toBe('1e-5');
    expect(formatSetting(0, 0.0001)).toBe('0.0000');
  });

  test('a printed byte count is within half a percent of the true one, and never shows four digits', () => {
    const unit: Record<string, number> = { B: 1, kB: 1e3, MB: 1e6, GB: 1e9, TB: 1e12, PB: 1e15 };
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 9e15 }), (bytes) => {
        const [value = '', suffix = ''] = plain(formatBytes(bytes)).split(' ');
        expect(Math.abs(Number(value) * (unit[suffix] ?? Number.NaN) - bytes) / bytes).toBeLessThan(0.005001);
        expect(value.replace('.', '').length).toBeLessThanOrEqual(3);
      }),
    );
  });
});

test('no message counts one thing in the plural: numbers of things go through counted or formatCounted', () => {
  const things =
    'layer|row|token|file|model|tensor|value|text|adapter|shard|column|conversation|window|weight|step|run|example|item|label|module|sequence|input|output|mask|number';
  const number =
    '[\\w.!]+\\.(?:length|size)|(?:[\\w.]+\\.)?(?:layers|rows|tokens|tensors|items|experts|heads|count|total|windows|sequences|blocks|vocab|depth|columns)';
  const bare = new RegExp(
    `\\$\\{(?:${number})\\} (?:(?:added|small|weight|attention) )?(?:${things})s\\b`,
    'g',
  );
  // numbers with their digits grouped, in templates and on screen; rates are of many
  const grouped = new RegExp(
    `\\{(?:formatCount\\([^{}]*\\)|(?:${number}))\\}(?: |\\s+)(?:(?:other|small) )?(?:${things}|parameter|point|download|like)s\\b(?!/s|=)`,
    'g',
  );
  expect(production.length).toBeGreaterThan(300);
  const found = production.flatMap(({ path, text }) =>
    [bare, grouped].flatMap((form) => [...text.matchAll(form)].map(([words]) => `${path}: ${words}`)),
  );
  expect(found).toEqual([]);
  expect([counted(1, 'layer'), counted(0, 'layer'), counted(2, 'entry', 'entries')]).toEqual([
    '1 layer',
    '0 layers',
    '2 entries',
  ]);
});
