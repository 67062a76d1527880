import fc from 'fast-check';
import { expect, test } from 'vitest';
import { filesOfPart } from './output-part';

test('parts are all files in order, one each at least, and as even as whole files can be', () => {
  const sizes = fc.array(fc.integer({ min: 1, max: 1000 }), { minLength: 1, maxLength: 40 });
  fc.assert(
    fc.property(sizes, fc.nat(), (bytes, seed) => {
      const files = bytes.map((byteLength, at) => ({ byteLength, at }));
      const of = 1 + (seed % files.length);
      const parts = Array.from({ length: of }, (_, i) => filesOfPart(files, { index: i + 1, of }));
      expect(parts.flat()).toEqual(files);
      const [total, largest] = [bytes.reduce((a, b) => a + b, 0), Math.max(...bytes)];
      for (const part of parts) {
        expect(part.length).toBeGreaterThan(0);
        const own = part.reduce((sum, { byteLength }) => sum + byteLength, 0);
        if (part.length > 1) expect(own).toBeLessThanOrEqual(total / of + largest);
      }
    }),
  );
});

test('more parts than files, and the part before all', () => {
  const files = [{ byteLength: 3 }, { byteLength: 4 }];
  expect(() => filesOfPart(files, { index: 1, of: 3 })).toThrow('cannot be cut into 3 parts');
  expect(filesOfPart(files, { index: 0, of: 1 })).toEqual([]);
});
