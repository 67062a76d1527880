import { describe, expect, it } from 'vitest';
import { layersToRemove, leastInfluential, straightestBlock } from './choose-layers';

describe('layersToRemove', () => {
  it('takes a number or a share', () => {
    expect(layersToRemove({ remove: 3 }, 8)).toBe(3);
    expect(layersToRemove({ ratio: 0.25 }, 8)).toBe(2);
    expect(layersToRemove({ ratio: 0.01 }, 8)).toBe(0);
  });
  it.each([
    { remove: 0 },
    { remove: 8 },
    { remove: 1.5 },
    { ratio: 0 },
    { ratio: 1 },
    { ratio: 0.99 },
    { ratio: Number.NaN },
  ])('%j of 8 is refused', (target) => {
    expect(() => layersToRemove(target, 8)).toThrow(expect.objectContaining({ code: 'Usage' }));
  });
});

describe('leastInfluential', () => {
  const influence = [0.05, 0.3, 0.1, 0.2, 0.1, 0.9];
  it('takes the lowest, of equal ones the lower layer', () => {
    expect(leastInfluential(influence, { remove: 2 }, 0)).toEqual([0, 2]);
    expect(leastInfluential(influence, { remove: 3 }, 1)).toEqual([2, 3, 4]);
    expect(leastInfluential(influence, { ratio: 0.5 }, 1)).toEqual([2, 3, 4]);
  });
  it('takes all below a threshold', () => {
    expect(leastInfluential(influence, { threshold: 0.2 }, 0)).toEqual([0, 2, 4]);
    expect(leastInfluential(influence, { threshold: 0.01 }, 0)).toEqual([]);
    expect(() => leastInfluential(influence, { threshold: 1 }, 0)).toThrow(/every layer is below 1/);
    expect(leastInfluential(influence, { threshold: 1 }, 1)).toEqual([1, 2, 3, 4, 5]);
  });
});

describe('straightestBlock', () => {
  // points on a line: the distance of i and j is |p_i − p_j|
  const points = [0, 0.01, 0.3, 0.32, 0.35, 0.6];
  const map = points.map((a) => points.map((b) => Math.abs(a - b)));
  it('takes the block over which the stream turns least; layer 0 stays', () => {
    expect(straightestBlock(map, { remove: 1 })).toEqual([2]);
    expect(straightestBlock(map, { remove: 2 })).toEqual([2, 3]);
    expect(straightestBlock(map, { ratio: 0.6 })).toEqual([2, 3, 4]);
  });
  it('takes the longest block within a threshold', () => {
    expect(straightestBlock(map, { threshold: 0.06 })).toEqual([2, 3]);
    expect(straightestBlock(map, { threshold: 0.01 })).toEqual([]);
  });
});
