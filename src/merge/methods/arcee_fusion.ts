import { defineMethod } from '../method';
import { dropped } from './parameters';

/**
 * Arcee fusion: takes over the changes that stand out, an importance |τ| · KL(softmax(row of W) ‖ softmax(row of W₀)) of
 * at least median + 1.5 interquartile ranges. mergekit 0.1.4 `arcee_fusion.py`, but with exact quantiles for every
 * size: mergekit draws a million elements at random from larger tensors. The divergence of a row is computed in f64 on
 * the host for both engines (merge/tensor/delta-score.ts).
 */
export const arceeFusion = defineMethod({
  id: 'arcee_fusion',
  title: 'Arcee fusion — keep what stands out',
  summary: 'Keeps the changes of one model that stand out in size and in their row, drops the rest.',
  formula: 'W = W₀ + m ⊙ τ,  m = [|τ| · KL(row) ≥ q₂ + 1.5 (q₃ − q₁)]',
  reference: { label: 'Arcee AI, in mergekit', url: 'https://github.com/arcee-ai/mergekit' },
  base: 'required',
  tells: dropped,
  models: { min: 1, max: 1 },
  parameters: {},
  modelParameters: {},
  compute: {
    kind: 'delta',
    preset: () => ({ select: 'fusion', rescale: 'none', consensus: 'none', normalize: false, lambda: 1 }),
  },
});
