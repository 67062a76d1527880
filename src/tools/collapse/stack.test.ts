import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { CollapsedLayer } from './report';
import {
  collapseAt,
  firstChange,
  isUntouched,
  removedLayers,
  removeLayers,
  type Stack,
  wholeStack,
} from './stack';

/** The value of the linear layers of every layer when layer i is worth θ[i]. */
const worth = (stack: Stack, theta: readonly number[]) =>
  stack.map(({ terms }) => terms.reduce((sum, t) => sum + t.coefficient * theta[t.layer]!, 0));
const THETA = [1, 10, 100, 1000, 10000];

describe('collapseAt', () => {
  it.each([
    // θ1 + (θ2 − θ1) + (θ3 − θ1), by the paper; θ1
    ['rdsc', 10 + 90 + 990],
    ['drop', 10],
  ] as const)('%s', (variant, value) => {
    const stack = collapseAt(wholeStack(5), 1, 2, variant);
    expect(worth(stack, THETA)).toEqual([1, value, 10000]);
    expect(stack.map(({ origin }) => origin)).toEqual([0, 1, 4]);
  });

  it('merges what was merged before by the same formula', () => {
    const theta = fc.array(fc.integer({ min: -50, max: 50 }), { minLength: 8, maxLength: 8 });
    const variant = fc.constantFrom('rdsc', 'drop');
    const steps = fc.array(fc.tuple(fc.nat(6), fc.integer({ min: 1, max: 3 })), { maxLength: 3 });
    fc.assert(
      fc.property(theta, variant, steps, (values, kind, list) => {
        let stack = wholeStack(8);
        let plain = [...values];
        for (const [at, count] of list) {
          const l = at % plain.length;
          const m = Math.min(count, plain.length - 1 - l);
          if (m === 0) continue;
          stack = collapseAt(stack, l, m, kind);
          const block = plain.slice(l, l + m + 1);
          const [first, ...rest] = block as [number, ...number[]];
          const merged = kind === 'drop' ? first : first + rest.reduce((a, b) => a + (b - first), 0);
          plain = [...plain.slice(0, l), merged, ...plain.slice(l + m + 1)];
        }
        for (const [i, value] of worth(stack, values).entries()) expect(value).toBeCloseTo(plain[i]!, 8);
        expect(stack.length).toBe(plain.length);
        // coefficients add up to one: layers that are all equal stay what they are
        for (const { terms } of stack) {
          expect(terms.reduce((s, t) => s + t.coefficient, 0)).toBeCloseTo(1, 10);
        }
      }),
    );
  });
});

describe('removeLayers', () => {
  it('lets the layer before each run take it in', () => {
    const stack = removeLayers(5, [1, 3, 4], 'rdsc');
    expect(worth(stack, THETA)).toEqual([10, 100 + 900 + 9900]);
    expect(removedLayers(stack, 5)).toEqual([1, 3, 4]);
  });

  it('drops layers anywhere', () => {
    const stack = removeLayers(5, [0, 4], 'drop');
    expect(worth(stack, THETA)).toEqual([10, 100, 1000]);
    expect(stack.every(isUntouched)).toBe(true);
    expect(firstChange(stack)).toBe(0);
    expect(firstChange(removeLayers(5, [3], 'drop'))).toBe(3);
    expect(firstChange(removeLayers(5, [3], 'rdsc'))).toBe(2);
    expect(firstChange(wholeStack(5))).toBe(5);
  });
});

describe('isUntouched', () => {
  it('knows a layer that became another', () => {
    const [layer] = wholeStack(1) as [CollapsedLayer];
    expect(isUntouched(layer)).toBe(true);
    expect(isUntouched({ ...layer, terms: [{ layer: 3, coefficient: 1 }] })).toBe(false);
    expect(isUntouched({ ...layer, terms: [{ layer: 0, coefficient: 2 }] })).toBe(false);
  });
});
