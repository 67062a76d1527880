import { expect, test } from 'vitest';
import { sevenDigits } from './report-files';

test('seven digits are those of the language, halves, powers of ten and values of all sizes among them', () => {
  const halves = Array.from({ length: 2000 }, (_, i) => 1_000_000.5 + 4001 * i);
  const tens = Array.from({ length: 60 }, (_, i) => 10 ** (i - 30)).flatMap((ten) => [ten, 0.99999995 * ten]);
  let bits = 1;
  const any = Array.from({ length: 50_000 }, () => {
    bits = Math.imul(bits, 1_664_525) + 1_013_904_223;
    return new Float32Array(Uint32Array.of(bits & 0x7fffffff).buffer)[0]!;
  });
  const values = Float32Array.from([0, ...halves, ...tens, ...any]).filter(Number.isFinite);
  expect([...values].filter((x) => sevenDigits(x) !== Number(x.toPrecision(7)))).toEqual([]);
});
