import { describe, expect, test } from 'vitest';
import { capitalize, codePoints, pythonRandom, rstrip, strip } from './python';

const range = (n: number) => Array.from({ length: n }, (_, i) => i);

describe('random.Random', () => {
  // printed by CPython 3.11
  test('samples as CPython does, call after call', () => {
    const small = pythonRandom(1234);
    expect(range(4).map(() => small.sample(range(100), 5))).toEqual([
      [99, 56, 14, 0, 11],
      [74, 4, 85, 88, 10],
      [12, 98, 45, 30, 2],
      [3, 2, 44, 82, 79],
    ]);
    const large = pythonRandom(1234);
    expect(range(3).map(() => large.sample(range(39905), 4))).toEqual([
      [28883, 7657, 490, 5940],
      [38156, 2288, 5500, 6450],
      [23241, 15519, 1142, 2019],
    ]);
  });

  test('by pool and by set, on either side of where it changes', () => {
    const random = pythonRandom(1234);
    expect(random.sample(range(10), 3)).toEqual([7, 1, 0]);
    expect(random.sample(range(30), 6)).toEqual([2, 25, 18, 1, 21, 22]);
    expect(random.sample(range(300), 26)).toEqual([
      42, 50, 181, 121, 8, 15, 177, 247, 237, 76, 46, 93, 58, 7, 257, 249, 127, 33, 277, 238, 35, 45, 263,
      296, 23, 138,
    ]);
  });

  test('other seeds, one of more than 32 bits', () => {
    const zero = pythonRandom(0);
    expect(zero.sample(range(5), 5)).toEqual([3, 4, 0, 1, 2]);
    expect(zero.sample(range(1_000_000), 2)).toEqual([424604, 962838]);
    expect(pythonRandom(2 ** 40 + 17).sample(range(1000), 7)).toEqual([677, 782, 247, 468, 707, 772, 113]);
    expect(() => zero.sample([1], 2)).toThrow(RangeError);
  });
});

test('texts as Python sees them', () => {
  expect(rstrip('a b \t\u2003\x1f')).toBe('a b');
  expect(strip('\n a\ufeff ')).toBe('a\ufeff');
  expect(capitalize('he SAID')).toBe('He said');
  expect(codePoints('naïve ☕ 😀')).toBe(9);
});

test('R59: a million spaces in the middle of a text take no longer than at its end', () => {
  const spaces = ' '.repeat(1_000_000);
  expect(rstrip(`a${spaces}b${spaces}`)).toHaveLength(1_000_002);
});
