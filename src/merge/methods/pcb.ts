import { defineMethod } from '../method';
import { calibration, calibrationSize } from './importance-parameters';
import { dropped, lambda, trimmingDensity } from './parameters';

/**
 * PCB-Merging (parameter competition balancing), Du et al. 2024, as the authors' code computes it (`PCB_merge`); their paper
 * prints softmaxes of τᵢ² and τᵢτⱼ, which are 4 % worse on pair F at density 0.2. Each tensor by itself, so that it streams; the
 * authors take the whole model as one vector, 1 % better there. Their tanh of τᵢ · Σ τ is left out: it is its argument for the
 * changes of fine-tunes.
 */
export const pcb = defineMethod({
  id: 'pcb',
  title: 'PCB — balanced competition',
  summary:
    'Averages changes that are large in their model and agree with the sum of all, and drops the rest; 5–55 % worse than task arithmetic in our table.',
  formula: 'W = W₀ + λ · Σ bᵢτᵢ / Σ bᵢ,  bᵢ = (βᵢ − θᵢ)₊,  βᵢ = e^(N·(|τᵢ| / max |τᵢ|)²) · τᵢ · Σ τⱼ',
  reference: { label: 'Du et al. 2024', url: 'https://arxiv.org/abs/2410.02396' },
  base: 'required',
  tells: dropped,
  models: { min: 1, max: 32 },
  parameters: { lambda, ...calibrationSize },
  modelParameters: { density: trimmingDensity(0.2), calibration },
  compute: {
    kind: 'delta',
    preset: (p) => ({
      select: 'own',
      score: async () => (await import('./pcb.score')).openScore,
      rescale: 'none',
      consensus: 'none',
      normalize: false,
      lambda: p.lambda,
    }),
  },
});
