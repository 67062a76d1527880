import { beforeEach, expect, it, vi } from 'vitest';

// what other tests gave back is not among it
let { giveBack, spareArray } = await import('./spare-arrays');
beforeEach(async () => {
  vi.resetModules();
  ({ giveBack, spareArray } = await import('./spare-arrays'));
});

it('gives memory that was given back again, with the length that is asked for', () => {
  const first = spareArray(300_000);
  expect(first.byteLength).toBe(300_000);
  const { buffer } = first;
  giveBack(buffer);
  const second = spareArray(400_000);
  expect(second.buffer === buffer).toBe(true);
  expect(second.byteLength).toBe(400_000);
  expect(spareArray(400_000).buffer === buffer).toBe(false);
});

it('keeps neither small nor large arrays, nor those of other sizes, nor without end', () => {
  for (const byteLength of [1000, 32 * 2 ** 20, 300_001]) {
    const buffer = new ArrayBuffer(byteLength);
    giveBack(buffer);
    expect(spareArray(byteLength).buffer === buffer).toBe(false);
  }
  const many = Array.from({ length: 80 }, () => new ArrayBuffer(2 ** 20));
  for (const buffer of many) giveBack(buffer);
  const taken = new Set(Array.from({ length: 80 }, () => spareArray(2 ** 20).buffer));
  expect(many.filter((buffer) => taken.has(buffer)).length).toBeLessThanOrEqual(64);
});
