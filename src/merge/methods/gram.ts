import { defineMethod } from '../method';
import { calibrationAlways, importanceAlways } from './importance-parameters';
import { density, lambda, weight } from './parameters';

/**
 * Gram merge: RegMean's closed form (Jin et al. 2023) on task vectors. Every linear layer takes the τ whose outputs are,
 * on each model's own text, nearest to that model's: τ = (ΣwᵢGᵢ)⁻¹ΣwᵢGᵢτᵢ per output row, Gᵢ = the products of the layer's
 * inputs plus 0.01 of their mean diagonal. Embedding rows count by how often a model used the token, everything else is
 * averaged. With a density below 1 the linear changes are trimmed by importance first.
 */
export const gram = defineMethod({
  id: 'gram',
  title: 'Gram merge — combine where inputs are active',
  summary:
    'Runs every model on its own text and combines the changes of each layer where that model’s inputs are active.',
  formula: 'W = W₀ + λ · (Σ wᵢGᵢ)⁻¹ Σ wᵢGᵢ τ̂ᵢ + sum · Σ wᵢτᵢ,  Gᵢ = 2/n · Σ x xᵀ + 0.01 · mean diag · I',
  reference: { label: 'Jin et al. 2023', url: 'https://arxiv.org/abs/2212.09849' },
  base: 'required',
  models: { min: 1, max: 32 },
  parameters: {
    lambda,
    match: {
      kind: 'choice',
      label: 'match',
      help: 'inputs: each layer by itself, where the models’ own inputs are active. outputs: layer by layer, what each model’s layer puts out, from the inputs of the model merged so far; twice the passes. stream: also what the merged model has lost before that layer. both: the mean of inputs and stream; nowhere far from the best. changes: no text is read, the changes stand for the inputs.',
      default: 'inputs',
      extension: true,
      calibrates: true,
      choices: [
        { value: 'inputs', label: 'inputs' },
        { value: 'outputs', label: 'outputs, layer by layer' },
        { value: 'stream', label: 'outputs and the stream' },
        { value: 'both', label: 'inputs and the stream' },
        { value: 'changes', label: 'changes, no text' },
      ],
    },
    gram: {
      kind: 'choice',
      label: 'Gram matrices',
      help: 'full: all products of a layer’s inputs (in blocks where they do not fit). diagonal: a few kB, about 4 % better than plain averaging.',
      default: 'full',
      extension: true,
      calibrates: true,
      choices: [
        { value: 'full', label: 'full' },
        { value: 'diagonal', label: 'diagonal' },
      ],
    },
    sum: {
      kind: 'number',
      label: 'sum',
      help: 'Share of all models’ changes, added up as in task arithmetic, on top. Helps where the models learned some of the same. Find the best searches for it.',
      default: 0,
      extension: true,
      min: -100,
      max: 100,
      slider: { min: 0, max: 0.5, step: 0.01 },
    },
    embedding: {
      kind: 'choice',
      label: 'embedding',
      help: 'tokens: each row counts by how often a model’s text used its token. average: all alike.',
      default: 'tokens',
      extension: true,
      calibrates: true,
      choices: [
        { value: 'tokens', label: 'by tokens' },
        { value: 'average', label: 'average' },
      ],
    },
    ...importanceAlways,
  },
  modelParameters: {
    weight: {
      ...weight,
      help: 'How much this model counts: 2 is as if it were listed twice.',
      default: 1,
      min: 0,
      slider: { min: 0, max: 3, step: 0.01 },
    },
    density: {
      ...density,
      help: 'Share of this model’s changes that is kept in its linear layers, by importance.',
    },
    calibration: calibrationAlways,
  },
  wholeModel: () => ['calibration'],
  validate(p, models) {
    if (p.match === 'inputs') return undefined;
    if (p.gram === 'diagonal') {
      return { reason: `match: ${p.match} needs whole Gram matrices`, remedy: 'Set gram: full.' };
    }
    if (models.every(({ density }) => density === 1)) return undefined;
    return {
      reason: `match: ${p.match} takes changes whole, and a density below 1 trims them by the models’ own inputs`,
      remedy: 'Set density: 1, or match: inputs.',
    };
  },
  compute: { kind: 'solved', lambda: (p) => p.lambda, sum: (p) => p.sum },
});
