import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { CollapsedLayer, CollapseVariant } from '../reports/collapse';
import {
  collapseAt,
  firstChange,
  isUntouched,
  removedLayers,
  removeLayers,
  type Stack,
  wholeStack,
} from './stack';

/** The value of a part of every layer when layer i is worth θ[i]. */
const worth = (stack: Stack, theta: readonly number[], part: 'attention' | 'mlp' | 'norm' = 'mlp') =>
  stack.map((layer) => layer[part].reduce((sum, t) => sum + t.coefficient * theta[t.layer]!, 0));
const THETA = [1, 10, 100, 1000, 10000];

describe('collapseAt', () => {
  it.each<[CollapseVariant, number]>([
    // θ1 + (θ2 − θ1) + (θ3 − θ1), by the paper; the last of them, by LaCo's code; their mean; θ1
    ['rdsc', 10 + 90 + 990],
    ['replace-last', 1000],
    ['mean', 370],
    ['drop', 10],
  ])('%s', (variant, value) => {
    const stack = collapseAt(wholeStack(5), 1, 2, { variant, parts: 'full' });
    for (const part of ['attention', 'mlp', 'norm'] as const) {
      expect(worth(stack, THETA, part)).toEqual([1, expect.closeTo(value, 9), 10000]);
    }
    expect(stack.map(({ origin }) => origin)).toEqual([0, 1, 4]);
  });

  it.each([
    ['full', [1090, 1090, 1090]],
    ['linear', [1090, 1090, 10]],
    ['attention', [1090, 10, 10]],
    ['mlp', [10, 1090, 10]],
  ] as const)('%s: what does not take part stays that of the first layer', (parts, values) => {
    const stack = collapseAt(wholeStack(5), 1, 2, { variant: 'rdsc', parts });
    expect((['attention', 'mlp', 'norm'] as const).map((part) => worth(stack, THETA, part)[1])).toEqual(
      values,
    );
  });

  it('is the official code’s result for replace-last: copy += model[l + k] − copy, again and again', () => {
    let copy = THETA[1]!;
    for (const k of [1, 2, 3]) copy += THETA[1 + k]! - copy;
    const stack = collapseAt(wholeStack(5), 1, 3, { variant: 'replace-last', parts: 'full' });
    expect(worth(stack, THETA)[1]).toBe(copy);
  });

  it('merges what was merged before by the same formula', () => {
    const theta = fc.array(fc.integer({ min: -50, max: 50 }), { minLength: 8, maxLength: 8 });
    const variant = fc.constantFrom<CollapseVariant>('rdsc', 'replace-last', 'mean', 'drop');
    const steps = fc.array(fc.tuple(fc.nat(6), fc.integer({ min: 1, max: 3 })), { maxLength: 3 });
    fc.assert(
      fc.property(theta, variant, steps, (values, kind, list) => {
        let stack = wholeStack(8);
        let plain = [...values];
        for (const [at, count] of list) {
          const l = at % plain.length;
          const m = Math.min(count, plain.length - 1 - l);
          if (m === 0) continue;
          stack = collapseAt(stack, l, m, { variant: kind, parts: 'full' });
          const block = plain.slice(l, l + m + 1);
          const [first, ...rest] = block as [number, ...number[]];
          const sum = rest.reduce((a, b) => a + b, 0);
          const merged = {
            rdsc: first + rest.reduce((a, b) => a + (b - first), 0),
            'replace-last': rest.at(-1)!,
            mean: (first + sum) / (m + 1),
            drop: first,
          }[kind];
          plain = [...plain.slice(0, l), merged, ...plain.slice(l + m + 1)];
        }
        for (const [i, value] of worth(stack, values).entries()) expect(value).toBeCloseTo(plain[i]!, 8);
        expect(stack.length).toBe(plain.length);
        // coefficients add up to one: layers that are all equal stay what they are
        for (const layer of stack) {
          expect(layer.attention.reduce((s, t) => s + t.coefficient, 0)).toBeCloseTo(1, 10);
        }
      }),
    );
  });
});

describe('removeLayers', () => {
  const kind = { variant: 'rdsc', parts: 'full' } as const;

  it('lets the layer before each run take it in', () => {
    const stack = removeLayers(5, [1, 3, 4], kind);
    expect(worth(stack, THETA)).toEqual([10, 100 + 900 + 9900]);
    expect(removedLayers(stack, 5)).toEqual([1, 3, 4]);
    expect(worth(removeLayers(5, [2, 2, 1], kind), THETA)[0]).toBe(1 + 9 + 99);
  });

  it('drops layers anywhere', () => {
    const stack = removeLayers(5, [4, 0], { variant: 'drop', parts: 'full' });
    expect(worth(stack, THETA)).toEqual([10, 100, 1000]);
    expect(stack.every(isUntouched)).toBe(true);
    expect(firstChange(stack)).toBe(0);
    expect(firstChange(removeLayers(5, [3], { variant: 'drop', parts: 'full' }))).toBe(3);
    expect(firstChange(removeLayers(5, [3], kind))).toBe(2);
    expect(firstChange(wholeStack(5))).toBe(5);
  });

  it.each([
    [[], 'NothingToCollapse', /nothing to do/],
    [[5], 'Usage', /no layer 5: the model has the layers 0 to 4/],
    [[1.5], 'Usage', /no layer 1.5/],
    [[0, 1], 'Usage', /Layer 0 has no layer before it/],
    [[0, 1, 2, 3, 4], 'Usage', /All 5 layers/],
  ])('%j is refused in words', (removed, code, words) => {
    const act = () => removeLayers(5, removed, kind);
    expect(act).toThrow(expect.objectContaining({ code }));
    expect(act).toThrow(words);
  });
});

describe('isUntouched', () => {
  it('knows a layer that became another', () => {
    const [layer] = wholeStack(1) as [CollapsedLayer];
    expect(isUntouched(layer)).toBe(true);
    expect(isUntouched({ ...layer, mlp: [{ layer: 3, coefficient: 1 }] })).toBe(false);
    expect(isUntouched({ ...layer, mlp: [{ layer: 0, coefficient: 2 }] })).toBe(false);
  });
});
