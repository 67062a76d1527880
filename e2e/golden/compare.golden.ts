/** Differences of a real model and its fine-tunes against figures computed in float64. */
import { describe, expect, it } from 'vitest';
import { compareInNode } from '../compare-in-node';
import { readText, real } from './reference';

interface GoldenTensor {
  shape: number[];
  numel: number;
  mean_abs: number;
  max_abs: number;
  norm_base: number;
  norm_delta: number;
  relative_diff: number;
  changed_ratio: number;
  bit_different_ratio: number;
  sign_flip_ratio: number;
  cosine: number;
  svd?: { singular_values_top16: number[]; count: number; stable_rank: number; rank95_energy: number };
}
interface Golden {
  total: { relative_diff: number; changed_ratio: number; numel: number; ranking_by_relative_diff: string[] };
  tensors: Record<string, GoldenTensor>;
}

/** Relative distance; absolute next to zero. */
const apart = (ours: number, theirs: number) => Math.abs(ours - theirs) / Math.max(Math.abs(theirs), 1e-12);

describe.each([
  ['base_vs_shakespeare_f32', 'f32/base', 'f32/shakespeare'],
  ['base_vs_wiki_f32', 'f32/base', 'f32/wiki'],
  ['base_vs_shakespeare_bf16', 'base', 'shakespeare'],
])('%s', (name, base, finetuned) => {
  it('gives the same figures within 1e-6, and the same singular values within 1e-5', async () => {
    const golden = JSON.parse(readText(real, `golden/diff/${name}.json`)) as Golden;
    const { report } = await compareInNode(real, base, finetuned, { tileElements: 8192, allSpectra: true });
    expect(report.failed).toEqual([]);
    expect(report.tensors.map((t) => t.name).sort()).toEqual(Object.keys(golden.tensors).sort());
    for (const ours of report.tensors) {
      const theirs = golden.tensors[ours.name]!;
      expect(ours.shape).toEqual(theirs.shape);
      for (const [what, figure, expected] of [
        ['mean', ours.meanAbs, theirs.mean_abs],
        ['max', ours.maxAbs, theirs.max_abs],
        ['base', ours.normBase, theirs.norm_base],
        ['delta', ours.normDelta, theirs.norm_delta],
        ['relative', ours.relative, theirs.relative_diff],
        ['cosine', ours.cosine, theirs.cosine],
      ] as const) {
        expect(apart(figure, expected), `${ours.name}: ${what} ${figure} ${expected}`).toBeLessThan(1e-6);
      }
      expect(ours.changedRatio, ours.name).toBe(theirs.changed_ratio);
      expect(ours.bitDifferentRatio, ours.name).toBe(theirs.bit_different_ratio);
      expect(ours.signFlipRatio, ours.name).toBe(theirs.sign_flip_ratio);
      if (!theirs.svd) {
        expect(ours.lora, ours.name).toBeUndefined();
        continue;
      }
      const { lora } = ours;
      for (const [i, s] of theirs.svd.singular_values_top16.entries()) {
        expect(apart(lora!.singularValues[i]!, s), `${ours.name}: σ${i + 1}`).toBeLessThan(1e-5);
      }
      expect(lora!.rank95, ours.name).toBe(theirs.svd.rank95_energy);
      expect(apart(ours.stableRank!, theirs.svd.stable_rank), ours.name).toBeLessThan(1e-5);
      expect(lora!.exact).toBe(true);
    }
    expect(apart(report.total.relative, golden.total.relative_diff)).toBeLessThan(1e-6);
    expect(report.total.changedRatio).toBe(golden.total.changed_ratio);
    expect(report.total.elements).toBe(golden.total.numel);
    expect(report.ranking.slice(0, 20)).toEqual(golden.total.ranking_by_relative_diff);
  });
});
