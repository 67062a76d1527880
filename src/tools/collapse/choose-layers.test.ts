import { describe, expect, it, test } from 'vitest';
import { defaultsOf } from '../../reports/option';
import { checkSettings, chooseLayers, layersToRemove, layerWords } from './choose-layers';
import { type CollapseSettings, collapseOptions } from './options';

const settings = (changes: Partial<CollapseSettings>): CollapseSettings => ({
  ...defaultsOf(collapseOptions),
  ...changes,
});

describe('layersToRemove', () => {
  it('takes a number or a share, or none', () => {
    expect(layersToRemove(settings({ remove: 3 }), 8)).toBe(3);
    expect(layersToRemove(settings({ ratio: 0.25 }), 8)).toBe(2);
    expect(layersToRemove(settings({}), 8)).toBeNull();
  });
  it.each([{ remove: 8 }, { remove: 9 }, { ratio: 0.99 }])('%j of 8 is refused', (target) => {
    expect(() => layersToRemove(settings(target), 8)).toThrow(expect.objectContaining({ code: 'Usage' }));
  });
});

const chosen = (changes: Partial<CollapseSettings>, influence: number[], distance: number[][]) =>
  chooseLayers(settings(changes), { influence, distance });

describe('by influence', () => {
  const influence = [0.05, 0.3, 0.1, 0.2, 0.1, 0.9];
  const layers = (target: Partial<CollapseSettings>, variant: 'drop' | 'rdsc') =>
    chosen({ planner: 'influence', variant, ...target }, influence, []);
  it('takes the lowest, of equal ones the lower layer; what is folded needs a layer before it', () => {
    expect(layers({ remove: 2 }, 'drop')).toEqual([0, 2]);
    expect(layers({ remove: 3 }, 'rdsc')).toEqual([2, 3, 4]);
    expect(layers({ ratio: 0.5 }, 'rdsc')).toEqual([2, 3, 4]);
  });
  it('takes all below a threshold', () => {
    expect(layers({ threshold: 0.2 }, 'drop')).toEqual([0, 2, 4]);
    expect(layers({ threshold: 0.01 }, 'drop')).toEqual([]);
    expect(() => layers({ threshold: 1 }, 'drop')).toThrow(/every layer is below 1/);
    expect(layers({ threshold: 1 }, 'rdsc')).toEqual([1, 2, 3, 4, 5]);
  });
});

describe('by angular distance', () => {
  // points on a line: the distance of i and j is |p_i − p_j|
  const points = [0, 0.01, 0.3, 0.32, 0.35, 0.6];
  const map = points.map((a) => points.map((b) => Math.abs(a - b)));
  const layers = (target: Partial<CollapseSettings>) =>
    chosen({ planner: 'angular', ...target }, [0, 0, 0, 0, 0], map);
  it('takes the block over which the stream turns least; layer 0 stays', () => {
    expect(layers({ remove: 1 })).toEqual([2]);
    expect(layers({ remove: 2 })).toEqual([2, 3]);
    expect(layers({ ratio: 0.6 })).toEqual([2, 3, 4]);
  });
  it('takes the longest block within a threshold', () => {
    expect(layers({ threshold: 0.06 })).toEqual([2, 3]);
    expect(layers({ threshold: 0.01 })).toEqual([]);
  });
});

describe('checkSettings', () => {
  it.each<[Partial<CollapseSettings>, string, RegExp]>([
    [{ highest: 8 }, 'Usage', /The highest layer is 8, and the model has 8 layers/],
    [{ block: 8 }, 'Usage', /No block of 8 layers fits: the loop begins at layer 7 − 8 = -1/],
    [{ lowest: 5 }, 'Usage', /No block of 3 layers fits/],
    [{ remove: 8 }, 'Usage', /Cannot remove 8 layers of 8/],
    [{ ratio: 0.01 }, 'NothingToCollapse', /less than half a layer/],
    [{ threshold: 0.5 }, 'Usage', /for the planners influence and angular/],
    [{ planner: 'influence' }, 'Usage', /how much is to go/],
    [{ planner: 'angular', remove: 1, threshold: 0.1 }, 'Usage', /how much is to go/],
    [{ planner: 'angular', ratio: 0.99 }, 'Usage', /share of 0.99/],
  ])('%j is refused in words', (changes, code, words) => {
    const act = () => checkSettings(settings(changes), 8);
    expect(act).toThrow(expect.objectContaining({ code }));
    expect(act).toThrow(words);
  });
  it('wants more than one layer', () => {
    expect(() => checkSettings(settings({}), 1)).toThrow(/single layer/);
    expect(() => checkSettings(settings({}), 8)).not.toThrow();
  });
});

test('layers in words', () => {
  expect(layerWords([1, 3, 4, 5, 9])).toBe('1, 3 to 5 and 9');
  expect(layerWords([3, 4])).toBe('3 and 4');
  expect(layerWords([])).toBe('none');
});
