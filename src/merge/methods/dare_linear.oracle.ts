import {
  addUp,
  changes,
  draws,
  type MethodContract,
  masked,
  matchL1,
  numbers,
  type Oracle,
  type OracleTensor,
} from './oracle';

export const contract: MethodContract = {
  permutation: 'invariant',
  single: 'rounded',
  spread: 'tensor',
  settings: [
    { models: [{ density: 0.4 }, { density: 0.25 }, { density: 0.7 }] },
    { parameters: { normalize: true, lambda: 0.9 }, models: [{ density: 0 }, { density: 0.5 }] },
    { parameters: { semantics: 'paper' }, models: [{ density: 0.4 }, { density: 0.25 }] },
    { parameters: { rescale: 'none' }, models: [{ density: 0.3 }] },
  ],
};

export const oracle: Oracle = (tensor) =>
  addUp(tensor, dropped(tensor), {
    weights: numbers(tensor.models, 'weight'),
    divide: tensor.parameters.normalize ? 'weights' : 'no',
    lambda: Number(tensor.parameters.lambda),
  });

/** Task vectors after dropout and rescaling. */
export function dropped(tensor: OracleTensor): Float64Array[] {
  const { semantics, rescale } = tensor.parameters;
  return changes(tensor).map((tau, i) => {
    const { id, parameters } = tensor.models[i]!;
    const density = Number(parameters.density);
    if (density >= 1) return tau;
    const words = draws(tensor, id, tau.length);
    const kept = masked(
      tau,
      words.map((w) => (w < Math.floor(density * 2 ** 32) ? 1 : 0)),
    );
    if (rescale === 'none' || density === 0) return kept;
    const byDensity = rescale === '1/density' || (rescale === 'on' && semantics !== 'mergekit');
    const factor = byDensity ? 1 / density : matchL1(tau, kept);
    return kept.map((t) => t * factor);
  });
}
