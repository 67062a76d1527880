import {
  addUp,
  changes,
  count,
  largest,
  type MethodContract,
  masked,
  numbers,
  type Oracle,
  threshold,
} from './oracle';

export const contract: MethodContract = {
  permutation: 'invariant',
  single: 'none',
  spread: 'element',
  settings: [
    { models: [{ density: 0.4 }, { density: 0.25 }, { density: 0.7 }] },
    {
      parameters: { region: 'model', lambda: 0.8 },
      models: [{ density: 0.4 }, { density: 0 }, { density: 0.7 }],
    },
  ],
};

export const oracle: Oracle = (tensor, all) => {
  const { region, lambda } = tensor.parameters;
  const densities = numbers(tensor.models, 'density');
  const kept = changes(tensor).map((tau, i) => {
    const density = densities[i]!;
    if (density >= 1) return tau;
    const least = region === 'model' ? threshold(all, i, density) : 0;
    return region === 'model'
      ? tau.map((t) => (Math.abs(t) >= least ? t : 0))
      : masked(tau, largest(tau, count(density, tau.length)));
  });
  return addUp(tensor, kept, { weights: kept.map(() => 1), divide: 'count', lambda: Number(lambda) });
};
