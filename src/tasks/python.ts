/** Python's semantics of strip, length and random numbers, where the harness depends on them. */

import { mersenneTwister } from '../linalg/torch-random';

/** Characters for which `str.isspace` is true (Unicode's White_Space, and the four separators U+001C–U+001F). */
const SPACE = '\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000';
const ONE = new RegExp(`[${SPACE}]`);
const BEGIN = new RegExp(`^[${SPACE}]+`);

/** `str.rstrip()`, from the end: an expression would begin anew at each of a million spaces in the middle. */
export function rstrip(text: string): string {
  let end = text.length;
  while (end > 0 && ONE.test(text[end - 1]!)) end--;
  return text.slice(0, end);
}

/** `str.lstrip()`. */
export const lstrip = (text: string): string => text.replace(BEGIN, '');

/** `str.strip()`. */
export const strip = (text: string): string => lstrip(rstrip(text));

/** `str.capitalize()`: the first character in upper case, all others in lower case. */
export function capitalize(text: string): string {
  const [first = ''] = text;
  return first.toUpperCase() + text.slice(first.length).toLowerCase();
}

/** `len(str)`: code points. */
export const codePoints = (text: string): number => [...text].length;

interface PythonRandom {
  /** `random.sample(population, k)`. @throws RangeError when the population is smaller */
  sample<T>(population: readonly T[], k: number): T[];
}

/**
 * `random.Random(seed)` of CPython: MT19937 (Matsumoto and Nishimura 1998) begun with `init_by_array`, and the choice of
 * indices of `Random.sample` (Lib/random.py).
 * @param seed a whole number from 0, below 2⁵³
 */
export function pythonRandom(seed: number): PythonRandom {
  const next = seeded(seed >= 2 ** 32 ? [seed % 2 ** 32, Math.floor(seed / 2 ** 32)] : [seed]);
  /** A whole number below `n` < 2³², by rejection. */
  const below = (n: number) => {
    const bits = 32 - Math.clz32(n);
    for (;;) {
      const value = next() >>> (32 - bits);
      if (value < n) return value;
    }
  };
  return {
    sample(population, k) {
      const n = population.length;
      if (k > n) throw new RangeError('sample larger than population');
      const result: (typeof population)[number][] = [];
      const setSize = 21 + (k > 5 ? 4 ** Math.ceil(Math.log(k * 3) / Math.log(4)) : 0);
      if (n <= setSize) {
        const pool = [...population];
        for (let i = 0; i < k; i++) {
          const j = below(n - i);
          result.push(pool[j]!);
          pool[j] = pool[n - i - 1]!;
        }
        return result;
      }
      const selected = new Set<number>();
      while (result.length < k) {
        const j = below(n);
        if (selected.has(j)) continue;
        selected.add(j);
        result.push(population[j]!);
      }
      return result;
    },
  };
}

const WORDS = 624;

/** MT19937 begun with `init_by_array(key)`. */
function seeded(key: readonly number[]): () => number {
  const state = new Uint32Array(WORDS);
  state[0] = 19650218;
  const mixed = (i: number) => (state[i - 1]! ^ (state[i - 1]! >>> 30)) >>> 0;
  for (let i = 1; i < WORDS; i++) state[i] = Math.imul(1812433253, mixed(i)) + i;
  let i = 1;
  const advance = () => {
    if (++i < WORDS) return;
    state[0] = state[WORDS - 1]!;
    i = 1;
  };
  for (let k = 0, j = 0; k < Math.max(WORDS, key.length); k++, j = (j + 1) % key.length) {
    state[i] = (state[i]! ^ Math.imul(mixed(i), 1664525)) + key[j]! + j;
    advance();
  }
  for (let k = 0; k < WORDS - 1; k++) {
    state[i] = (state[i]! ^ Math.imul(mixed(i), 1566083941)) - i;
    advance();
  }
  state[0] = 0x80000000;
  return mersenneTwister(state);
}
