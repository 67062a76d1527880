import fc from 'fast-check';
import { expect, it } from 'vitest';
import { kept, sameFacts } from './same-facts';

it('a copy says the same; another JSON text does not', () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 2 }), fc.jsonValue({ maxDepth: 2 }), (a, b) => {
      expect(sameFacts(a, structuredClone(a))).toBe(true);
      if (sameFacts(a, b)) expect(b).toEqual(a);
    }),
    { numRuns: 50 },
  );
});

it('tells apart what is absent, undefined, an array or an object', () => {
  expect(sameFacts({ a: 1 }, { a: 1, b: 2 })).toBe(false);
  expect(sameFacts({ a: undefined }, { b: undefined })).toBe(false);
  expect(sameFacts([], {})).toBe(false);
  expect(sameFacts([1, 2], [1, 3])).toBe(false);
  expect(sameFacts(null, {})).toBe(false);
});

it('keeps the old object only where nothing changed', () => {
  const before = [{ name: 'a', shape: [1, 2] }];
  expect(kept([{ name: 'a', shape: [1, 2] }], before)).toBe(before);
  const now = [{ name: 'a', shape: [2, 2] }];
  expect(kept(now, before)).toBe(now);
});
