import {
  addUp,
  byMagnitude,
  changes,
  draws,
  type MethodContract,
  matchL1,
  numbers,
  type Oracle,
  type OracleTensor,
  vectorsOf,
} from './oracle';

export const contract: MethodContract = {
  permutation: 'invariant',
  single: 'rounded',
  spread: 'tensor',
  settings: [
    { models: [{ density: 0.4, epsilon: 0.1 }, { density: 0.25 }, { density: 0.7, epsilon: 0.29 }] },
    { parameters: { rescale: '1/probability' }, models: [{ density: 0.3 }] },
  ],
};

export const oracle: Oracle = (tensor) =>
  addUp(tensor, prunedByRank(tensor), {
    weights: numbers(tensor.models, 'weight'),
    divide: tensor.parameters.normalize ? 'weights' : 'no',
    lambda: Number(tensor.parameters.lambda),
  });

/** Task vectors after MagPrune and rescaling. */
export function prunedByRank(tensor: OracleTensor): Float64Array[] {
  const { rescale } = tensor.parameters;
  return changes(tensor).map((tau, i) => {
    const { id, parameters } = tensor.models[i]!;
    const density = Number(parameters.density);
    const epsilon = Number(parameters.epsilon);
    if (density >= 1) return tau;
    if (density <= 0) return tau.map(() => 0);
    const words = draws(tensor, id, tau.length);
    const kept = new Float64Array(tau.length);
    for (const row of vectorsOf(tensor.shape, 'rows')) {
      const order = byMagnitude(row.map((e) => tau[e]!)).reverse(); // smallest first
      order.forEach((place, rank) => {
        const e = row[place]!;
        const q = row.length === 1 ? density : density - epsilon + (2 * epsilon * rank) / (row.length - 1);
        if (words[e]! < Math.floor(q * 2 ** 32))
          kept[e] = rescale === '1/probability' ? tau[e]! / q : tau[e]!;
      });
    }
    const factor = rescale === 'l1' ? matchL1(tau, kept) : 1;
    return kept.map((t) => t * factor);
  });
}
