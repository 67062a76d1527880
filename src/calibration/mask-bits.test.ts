import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { maskRowWords } from '../backend/kernels/select';
import { countBits, flatBits, pack, transposeBits, unpack } from './selection-records';

/** A mask [rows, cols] of booleans, as words. */
function words(bits: readonly boolean[], rows: number, cols: number): Uint32Array<ArrayBuffer> {
  const out = new Uint32Array(rows * maskRowWords(cols));
  for (const [e, bit] of bits.entries()) {
    const [r, c] = [Math.floor(e / cols), e % cols];
    if (bit) out[r * maskRowWords(cols) + (c >>> 5)]! |= 1 << (c & 31);
  }
  return out;
}

const masks = fc
  .tuple(fc.integer({ min: 1, max: 9 }), fc.integer({ min: 1, max: 70 }))
  .chain(([rows, cols]) =>
    fc
      .array(fc.boolean(), { minLength: rows * cols, maxLength: rows * cols })
      .map((bits) => ({ rows, cols, bits, words: words(bits, rows, cols) })),
  );

describe('masks of bits', () => {
  test('count, flatten and transpose as lists of booleans do', () => {
    fc.assert(
      fc.property(masks, fc.nat(), fc.nat(), ({ rows, cols, bits, words: mask }, a, b) => {
        expect(countBits(mask)).toBe(bits.filter(Boolean).length);
        const [begin, end] = [a % (bits.length + 1), b % (bits.length + 1)].sort((x, y) => x - y) as [
          number,
          number,
        ];
        const flat = flatBits(mask, cols, begin, end);
        const read = Array.from({ length: end - begin }, (_, i) => ((flat[i >>> 5]! >>> (i & 31)) & 1) === 1);
        expect(read).toEqual(bits.slice(begin, end));
        const transposed = Array.from(
          { length: rows * cols },
          (_, i) => bits[(i % rows) * cols + Math.floor(i / rows)]!,
        );
        expect(transposeBits(mask, rows, cols)).toEqual(words(transposed, cols, rows));
      }),
    );
  });

  test('whole words of rows that need no filling up are taken as they are', () => {
    const bits = Array.from({ length: 128 }, (_, i) => i % 3 === 0);
    const mask = words(bits, 2, 64);
    expect(flatBits(mask, 64, 32, 96)).toEqual(mask.slice(1, 3));
  });

  test('what is packed comes back in its place, zero elsewhere', () => {
    fc.assert(
      fc.property(masks, ({ rows, cols, bits, words: mask }) => {
        const values = Float32Array.from(bits, (_, i) => i + 1);
        const packed = pack(values, mask, rows, cols);
        expect([...packed]).toEqual([...values].filter((_, i) => bits[i]));
        const flat = flatBits(mask, cols, 0, bits.length);
        expect([...unpack(flat, packed, bits.length)]).toEqual([...values].map((v, i) => (bits[i] ? v : 0)));
      }),
    );
  });
});
