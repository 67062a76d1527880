import { defineMethod } from '../method';
import { dropped, int8Mask } from './parameters';

/**
 * SCE: select, calculate, erase. Wan et al. 2024 (FuseChat); mergekit 0.1.4 `sce.py`. Keeps the places where the models
 * differ most, weighs each model by the mean square of what is left, erases what disagrees with the elected sign.
 * mergekit takes equal weights wherever those mean squares add up to less than 1e-6, which is so for most real
 * fine-tunes; `paper` has no such limit.
 */
export const sce = defineMethod({
  id: 'sce',
  title: 'SCE — select, calculate, erase',
  summary:
    'Keeps the places where the models differ most and weighs each model by the energy of its changes there.',
  formula: 'W = W₀ + Σ mᵢcᵢτ̂ᵢ / Σ mᵢcᵢ,  cᵢ = mean(τ̂ᵢ²) / Σ mean(τ̂ⱼ²)',
  reference: { label: 'Wan et al. 2024', url: 'https://arxiv.org/abs/2408.07990' },
  base: 'required',
  tells: dropped,
  models: { min: 1, max: 32 },
  parameters: {
    select_topk: {
      kind: 'number',
      label: 'select top k',
      help: 'Share of the places where the models differ at all that is kept, those with the largest variance.',
      default: 1,
      min: 0,
      max: 1,
      slider: { min: 0, max: 1, step: 0.01 },
    },
    int8_mask: int8Mask,
    semantics: {
      kind: 'choice',
      label: 'semantics',
      help: 'mergekit weighs all models alike where their changes are small (mean squares below 1e-6 in all).',
      default: 'mergekit',
      extension: true,
      choices: [
        { value: 'mergekit', label: 'mergekit' },
        { value: 'paper', label: 'paper' },
      ],
    },
  },
  modelParameters: {},
  compute: {
    kind: 'delta',
    preset: (p) => ({
      select: 'variance',
      share: p.select_topk,
      rescale: 'none',
      consensus: 'sum',
      ballots: 'unweighted',
      weights: 'energy',
      floor: p.semantics === 'mergekit' ? 1e-6 : 0,
      normalize: true,
      lambda: 1,
    }),
  },
});
