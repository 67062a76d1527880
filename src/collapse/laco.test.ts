import { describe, expect, it } from 'vitest';
import type { CollapseVariant } from '../reports/collapse';
import { collapseGreedily, type LacoSettings } from './laco';
import type { Stack } from './stack';

const kind = { variant: 'rdsc' as CollapseVariant, parts: 'linear' as const };
const settings = (changes: Partial<LacoSettings> = {}): LacoSettings => ({
  block: 3,
  lowest: 0,
  highest: 7,
  interval: 2,
  threshold: 0.5,
  least: 1,
  ...changes,
});

/** The notebook's loop, written down anew over a list of layer numbers: which block is tried where, and what is left. */
function notebook(
  layers: number,
  { block, lowest, highest, interval, threshold }: LacoSettings,
  similar: (depth: number, l: number) => number,
) {
  let model = Array.from({ length: layers }, (_, i) => i);
  const tried: [number, number, boolean][] = [];
  let l = highest - block;
  while (l >= lowest) {
    const k = Math.min(block - 1, model.length - 1 - l);
    if (k < 1) {
      l -= 1;
      continue;
    }
    const candidate = [...model.slice(0, l + 1), ...model.slice(l + k + 1)];
    const s = similar(candidate.length, l);
    tried.push([l, k, s > threshold]);
    if (s > threshold) {
      model = candidate;
      l -= interval;
      if (l >= model.length) l = model.length - 1 - block;
    } else l -= 1;
  }
  return { model, tried };
}

describe('the greedy loop', () => {
  it.each([
    ['always similar', settings({ interval: 1 }), () => 1],
    ['similar high up', settings(), (_: number, l: number) => (l > 2 ? 0.9 : 0.1)],
    ['at the threshold, which is not above it', settings({ threshold: 0.9 }), () => 0.9],
    ['depends on depth', settings({ block: 2, interval: 3 }), (depth: number) => depth / 8],
    ['large blocks', settings({ block: 6, highest: 7, interval: 1 }), () => 0.8],
    ['a range', settings({ lowest: 2, highest: 6, interval: 1 }), () => 0.8],
  ])('%s: tries and keeps what the notebook does', async (_, chosen, similar) => {
    const wanted = notebook(8, chosen, similar);
    const { stack, steps } = await collapseGreedily(8, chosen, kind, async (candidate, l) =>
      similar(candidate.length, l),
    );
    expect(steps.map((s) => [s.layer, s.count, s.accepted])).toEqual(wanted.tried);
    expect(stack.map(({ origin }) => origin)).toEqual(wanted.model);
    expect(steps.at(-1)!.layers).toBe(wanted.model.length);
  });

  it('shows the search a shallower model whose layers below are the original’s', async () => {
    const seen: [Stack, number][] = [];
    await collapseGreedily(8, settings({ interval: 1 }), kind, async (candidate, from) => {
      seen.push([candidate, from]);
      return 1;
    });
    expect(seen.length).toBeGreaterThan(2);
    for (const [candidate, from] of seen) {
      expect(candidate.length).toBeLessThan(8);
      for (let i = 0; i < from; i++) {
        expect(candidate[i]).toMatchObject({ origin: i, mlp: [{ layer: i, coefficient: 1 }] });
      }
    }
  });

  it('merges a merged layer again', async () => {
    const { stack } = await collapseGreedily(6, settings({ highest: 5, interval: 1 }), kind, async () => 1);
    // l = 2 takes in 3 and 4 (θ3 + θ4 − θ2), then l = 1 takes in that and 5, then l = 0 the rest
    expect(stack).toHaveLength(1);
    const second = await collapseGreedily(
      6,
      settings({ highest: 5, interval: 1, lowest: 1 }),
      kind,
      async () => 1,
    );
    expect(second.stack[1]!.mlp).toEqual([
      { layer: 1, coefficient: -1 },
      { layer: 2, coefficient: -1 },
      { layer: 3, coefficient: 1 },
      { layer: 4, coefficient: 1 },
      { layer: 5, coefficient: 1 },
    ]);
  });

  it('stops at the target, with a smaller last block where it must', async () => {
    const { stack, steps } = await collapseGreedily(8, settings({ least: 5 }), kind, async () => 1);
    expect(stack).toHaveLength(5);
    expect(steps.map((s) => s.count)).toEqual([2, 1]);
  });

  it('takes a candidate that is not finite for one that is not similar', async () => {
    const { stack, steps } = await collapseGreedily(8, settings(), kind, async () => null);
    expect(stack).toHaveLength(8);
    expect(steps.every((s) => !s.accepted && s.similarity === null)).toBe(true);
  });

  it.each([
    [settings({ block: 1 }), /are not valid/],
    [settings({ highest: 8 }), /are not valid/],
    [settings({ interval: 0 }), /are not valid/],
    [settings({ threshold: 1 }), /are not valid/],
    [settings({ threshold: Number.NaN }), /are not valid/],
    [settings({ block: 8 }), /No block of 8 layers fits: the loop begins at layer 7 − 8 = -1/],
    [settings({ lowest: 5 }), /No block of 3 layers fits/],
  ])('%j is refused in words', async (chosen, words) => {
    await expect(collapseGreedily(8, chosen, kind, async () => 1)).rejects.toThrow(words);
  });
});
