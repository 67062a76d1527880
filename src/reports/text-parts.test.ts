import { expect, test } from 'vitest';
import { stretchesOf } from './text-parts';

test('stretches of a text cover it without cutting words, and a text that is too short is refused', () => {
  const words = Array.from({ length: 4000 }, (_, i) => `word${i}`);
  const known = new Set(words);
  const text = words.join(' ');
  const stretches = stretchesOf({ text }, 'text').map((of) => ('text' in of ? of.text : ''));
  expect(stretches.length).toBe(48);
  for (const stretch of stretches) {
    expect(stretch.length).toBeLessThanOrEqual(1001);
    expect(stretch.split(' ').filter((word) => !known.has(word))).toEqual([]);
  }
  expect(new Set(stretches).size).toBe(48);
  const ids = Array.from({ length: 500 }, (_, i) => i);
  expect(stretchesOf({ ids }, 'ids').flatMap((of) => ('ids' in of ? of.ids : []))).toEqual(ids.slice(0, 480));
  expect(() => stretchesOf({ text: 'a few words' }, 'text')).toThrow(/too short/);
});
