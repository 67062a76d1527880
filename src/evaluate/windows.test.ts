import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { cutWindows } from './windows';

describe('cutWindows', () => {
  it('300 tokens in windows of 256 by 128', () => {
    expect(cutWindows(300, 256, 128)).toEqual([
      { begin: 0, end: 256, from: 1 },
      { begin: 128, end: 300, from: 128 },
    ]);
    expect(cutWindows(256, 256, 128)).toEqual([{ begin: 0, end: 256, from: 1 }]);
    expect(cutWindows(2, 256, 128)).toEqual([{ begin: 0, end: 2, from: 1 }]);
  });

  it('scores every token but the first exactly once, with something before it in its window', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 2, max: 400 }),
        fc.integer({ min: 2, max: 60 }),
        fc.nat(),
        (n, window, s) => {
          const stride = 1 + (s % (window - 1));
          const windows = cutWindows(n, window, stride);
          const scored = windows.flatMap(({ begin, end, from }) =>
            Array.from({ length: end - begin - from }, (_, i) => begin + from + i),
          );
          expect(scored).toEqual(Array.from({ length: n - 1 }, (_, i) => i + 1));
          for (const [i, { begin, end, from }] of windows.entries()) {
            expect(begin).toBe(i * stride);
            expect(end).toBe(Math.min(begin + window, n));
            expect(from).toBeGreaterThanOrEqual(1);
          }
          // the last is the first that reaches the end
          expect(windows.findIndex(({ end }) => end === n)).toBe(windows.length - 1);
        },
      ),
    );
  });

  it('without overlap sees every token once, and scores all but the first of each window', () => {
    expect(cutWindows(513, 256, 256)).toEqual([
      { begin: 0, end: 256, from: 1 },
      { begin: 256, end: 512, from: 1 },
    ]);
    expect(cutWindows(514, 256, 256).at(-1)).toEqual({ begin: 512, end: 514, from: 1 });
  });

  it('refuses texts without anything to score, and strides that skip tokens', () => {
    expect(() => cutWindows(0, 256, 128)).toThrow(expect.objectContaining({ code: 'TextEmpty' }));
    expect(() => cutWindows(1, 256, 128)).toThrow(expect.objectContaining({ code: 'TextTooShort' }));
    for (const [window, stride] of [
      [256, 257],
      [256, 0],
      [1, 1],
      [2.5, 1],
      [256, Number.NaN],
    ] as const) {
      expect(() => cutWindows(300, window, stride)).toThrow(expect.objectContaining({ code: 'Usage' }));
    }
  });
});
