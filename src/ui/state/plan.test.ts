import fc from 'fast-check';
import { expect, it } from 'vitest';
import { isDeepEqual, previousIfEqual } from './plan';

it('a copy says the same; another JSON text does not', () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 2 }), fc.jsonValue({ maxDepth: 2 }), (a, b) => {
      expect(isDeepEqual(a, structuredClone(a))).toBe(true);
      if (isDeepEqual(a, b)) expect(b).toEqual(a);
    }),
    { numRuns: 50 },
  );
});

it('tells apart what is absent, undefined, an array or an object', () => {
  expect(isDeepEqual({ a: 1 }, { a: 1, b: 2 })).toBe(false);
  expect(isDeepEqual({ a: undefined }, { b: undefined })).toBe(false);
  expect(isDeepEqual([], {})).toBe(false);
  expect(isDeepEqual([1, 2], [1, 3])).toBe(false);
  expect(isDeepEqual(null, {})).toBe(false);
});

it('keeps the old object only where nothing changed', () => {
  const before = [{ name: 'a', shape: [1, 2] }];
  expect(previousIfEqual([{ name: 'a', shape: [1, 2] }], before)).toBe(before);
  const now = [{ name: 'a', shape: [2, 2] }];
  expect(previousIfEqual(now, before)).toBe(now);
});
