import { describe, expect, it } from 'vitest';
import { defaultsOf } from '../../reports/option';
import { type CollapseSettings, collapseOptions } from './options';
import { collapseGreedily } from './search';
import type { Stack } from './stack';

type Settings = CollapseSettings & { highest: number };
const settings = (changes: Partial<Settings> = {}): Settings => ({
  ...defaultsOf(collapseOptions),
  ...{ highest: 7, similarity: 0.5 },
  ...changes,
});

/** The notebook's loop, written down anew over a list of layer numbers: which block is tried where, and what is left. */
function notebook(
  layers: number,
  { block, lowest, highest, interval, similarity }: Settings,
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
    tried.push([l, k, s > similarity]);
    if (s > similarity) {
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
    ['at the threshold, which is not above it', settings({ similarity: 0.9 }), () => 0.9],
    ['depends on depth', settings({ block: 2, interval: 3 }), (depth: number) => depth / 8],
    ['large blocks', settings({ block: 6, highest: 7, interval: 1 }), () => 0.8],
    ['a range', settings({ lowest: 2, highest: 6, interval: 1 }), () => 0.8],
  ])('%s: tries and keeps what the notebook does', async (_, chosen, similar) => {
    const wanted = notebook(8, chosen, similar);
    const { stack, steps } = await collapseGreedily(8, chosen, async (candidate, l) =>
      similar(candidate.length, l),
    );
    expect(steps.map((s) => [s.layer, s.count, s.accepted])).toEqual(wanted.tried);
    expect(stack.map(({ origin }) => origin)).toEqual(wanted.model);
    expect(steps.at(-1)!.layers).toBe(wanted.model.length);
  });

  it('shows the search a shallower model whose layers below are the original’s', async () => {
    const seen: [Stack, number][] = [];
    await collapseGreedily(8, settings({ interval: 1 }), async (candidate, from) => {
      seen.push([candidate, from]);
      return 1;
    });
    expect(seen.length).toBeGreaterThan(2);
    for (const [candidate, from] of seen) {
      expect(candidate.length).toBeLessThan(8);
      for (let i = 0; i < from; i++) {
        expect(candidate[i]).toMatchObject({ origin: i, terms: [{ layer: i, coefficient: 1 }] });
      }
    }
  });

  it('merges a merged layer again', async () => {
    const { stack } = await collapseGreedily(6, settings({ highest: 5, interval: 1 }), async () => 1);
    // l = 2 takes in 3 and 4 (θ3 + θ4 − θ2), then l = 1 takes in that and 5, then l = 0 the rest
    expect(stack).toHaveLength(1);
    const second = await collapseGreedily(6, settings({ highest: 5, interval: 1, lowest: 1 }), async () => 1);
    expect(second.stack[1]!.terms).toEqual([
      { layer: 1, coefficient: -1 },
      { layer: 2, coefficient: -1 },
      { layer: 3, coefficient: 1 },
      { layer: 4, coefficient: 1 },
      { layer: 5, coefficient: 1 },
    ]);
  });

  it('stops at the target, with a smaller last block where it must', async () => {
    const { stack, steps } = await collapseGreedily(8, settings({ remove: 3 }), async () => 1);
    expect(stack).toHaveLength(5);
    expect(steps.map((s) => s.count)).toEqual([2, 1]);
  });

  it('takes a candidate that is not finite for one that is not similar', async () => {
    const { stack, steps } = await collapseGreedily(8, settings(), async () => null);
    expect(stack).toHaveLength(8);
    expect(steps.every((s) => !s.accepted && s.similarity === null)).toBe(true);
  });
});
