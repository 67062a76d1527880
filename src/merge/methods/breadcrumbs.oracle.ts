import {
  addUp,
  byMagnitude,
  changes,
  count,
  type MethodContract,
  matchL1,
  numbers,
  type Oracle,
  type OracleTensor,
} from './oracle';

export const contract: MethodContract = {
  permutation: 'invariant',
  single: 'rounded',
  spread: 'element',
  settings: [
    { models: [{ density: 0.4 }, { density: 0.25, gamma: 0.1 }, { density: 0.95, gamma: 0.2 }] },
    { parameters: { rescale: 'l1', lambda: 0.9 }, models: [{ density: 0.5, gamma: 0 }, { density: 0 }] },
  ],
};

export const oracle: Oracle = (tensor) =>
  addUp(tensor, changesWithoutEnds(tensor), {
    weights: numbers(tensor.models, 'weight'),
    divide: tensor.parameters.normalize ? 'weights' : 'no',
    lambda: Number(tensor.parameters.lambda),
  });

/** Task vectors without their largest and smallest changes, rescaled. */
export function changesWithoutEnds(tensor: OracleTensor): Float64Array[] {
  const { rescale } = tensor.parameters;
  return changes(tensor).map((tau, i) => {
    const { parameters } = tensor.models[i]!;
    const density = Number(parameters.density);
    const n = tau.length;
    if (density >= 1) return tau;
    const target = count(density, n);
    let top = Math.floor(Number(parameters.gamma) * n);
    let bottom = n - target - top;
    if (bottom < 0) {
      top += bottom;
      bottom = 0;
    }
    const ascending = byMagnitude(tau).reverse();
    const kept = new Float64Array(n);
    for (const e of ascending.slice(bottom, n - top)) kept[e] = tau[e]!;
    if (rescale === 'none' || density === 0) return kept;
    const factor = rescale === 'l1' ? matchL1(tau, kept) : 1 / density;
    return kept.map((t) => t * factor);
  });
}
