import { describe, expect, it } from 'vitest';
import { cutTiles } from './tiles';

describe('cutTiles', () => {
  it('leaves a tensor that fits in one piece', () => {
    expect(cutTiles(100, 4096)).toEqual([{ begin: 0, end: 100 }]);
    expect(cutTiles(0, 4096)).toEqual([]);
  });

  it('cuts on blocks, covering every element once', () => {
    const tiles = cutTiles(20_000, 9000);
    expect(tiles).toEqual([
      { begin: 0, end: 8192 },
      { begin: 8192, end: 16_384 },
      { begin: 16_384, end: 20_000 },
    ]);
  });

  it('keeps rows whole where asked', () => {
    for (const tile of cutTiles(3 * 4096 * 12, 4096 * 7, 3 * 512)) {
      expect(tile.begin % (3 * 512)).toBe(0);
      expect(tile.begin % 4096).toBe(0);
    }
  });

  it('refuses rows that cannot be tiled', () => {
    expect(() => cutTiles(4097 * 4096, 8192, 4097)).toThrow(/do not fit/);
  });
});
