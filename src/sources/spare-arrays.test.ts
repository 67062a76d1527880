import { expect, it } from 'vitest';
import { giveBack, spareArray } from './spare-arrays';

it('gives memory that was given back again, with the length that is asked for', () => {
  const first = spareArray(300_000);
  expect(first.byteLength).toBe(300_000);
  const { buffer } = first;
  giveBack(buffer);
  const second = spareArray(400_000);
  expect(second.buffer).toBe(buffer);
  expect(second.byteLength).toBe(400_000);
  expect(spareArray(400_000).buffer).not.toBe(buffer);
});

it('keeps neither small nor large arrays, nor those of other sizes, nor without end', () => {
  for (const byteLength of [1000, 32 * 2 ** 20, 300_001]) {
    const buffer = new ArrayBuffer(byteLength);
    giveBack(buffer);
    expect(spareArray(byteLength).buffer).not.toBe(buffer);
  }
  const many = Array.from({ length: 80 }, () => new ArrayBuffer(2 ** 20));
  for (const buffer of many) giveBack(buffer);
  const taken = new Set(Array.from({ length: 80 }, () => spareArray(2 ** 20).buffer));
  expect(many.filter((buffer) => taken.has(buffer)).length).toBeLessThanOrEqual(64);
});
