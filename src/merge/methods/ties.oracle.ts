import {
  addUp,
  type Combination,
  changes,
  count,
  inSpace,
  largest,
  type MethodContract,
  masked,
  matchL1,
  numbers,
  type Oracle,
  type OracleTensor,
  threshold,
} from './oracle';

export const contract: MethodContract = {
  permutation: 'invariant',
  single: 'rounded',
  spread: 'element',
  settings: [
    { models: [{ density: 0.4 }, { density: 0.25 }, { density: 0.7 }] },
    {
      parameters: { space: 'knots', lambda: 0.8 },
      models: [{ density: 0.4 }, { density: 0.25 }, { density: 0.7 }],
    },
    {
      models: [{ density: 0 }, { density: 0.5 }, { weight: -0.2, density: 0.5 }],
      parameters: { lambda: 0.9 },
    },
    { parameters: { semantics: 'paper' }, models: [{ density: 0.2 }, { density: 0.3 }, { density: 0.2 }] },
    { parameters: { semantics: 'paper', lambda: 1.5, rescale: 'on' }, models: [{ density: 0.1 }] },
    {
      parameters: { semantics: 'peft', majority_sign_method: 'frequency' },
      models: [{ density: 0.3 }, { density: 0.3 }, { density: 0.3 }],
    },
    { parameters: { semantics: 'peft' }, models: [{ density: 0.3 }, { weight: -1, density: 0.3 }] },
    { parameters: { rescale: 'on', normalize: false }, models: [{ density: 0.3 }, { density: 0.6 }] },
  ],
};

export const oracle: Oracle = (tensor, all) => inSpace(tensor, all, inWeights);

const inWeights: Oracle = (tensor, all) => {
  const { parameters } = tensor;
  const kept = trimmed(tensor, all);
  const weights = numbers(tensor.models, 'weight');
  const lambda = Number(parameters.lambda);
  if (parameters.semantics === 'mergekit') {
    return addUp(tensor, kept, {
      weights,
      ballots: 'weighted',
      divide: parameters.normalize ? 'weights' : 'no',
      lambda,
    });
  }
  const how: Combination = {
    weights,
    ballots: parameters.majority_sign_method === 'frequency' ? 'signs' : 'values',
    divide: 'count',
    lambda,
  };
  return addUp(tensor, kept, parameters.semantics === 'paper' ? { ...how, zero: majority(all) } : how);
};

/** Task vectors after trimming and rescaling. */
function trimmed(tensor: OracleTensor, all: readonly OracleTensor[]): Float64Array[] {
  const { semantics, rescale } = tensor.parameters;
  return changes(tensor).map((tau, i) => {
    const density = Number(tensor.models[i]!.parameters.density);
    if (density >= 1) return tau;
    const least = semantics === 'paper' ? threshold(all, i, density) : 0;
    const kept =
      semantics === 'paper'
        ? tau.map((t) => (Math.abs(t) >= least ? t : 0))
        : masked(tau, largest(tau, count(density, tau.length)));
    const factor =
      rescale === '1/density' || (rescale === 'on' && semantics !== 'mergekit')
        ? 1 / density
        : rescale === 'none'
          ? 1
          : matchL1(tau, kept);
    return density === 0 ? kept : kept.map((t) => t * factor);
  });
}

const majorities = new WeakMap<readonly OracleTensor[], 1 | -1>();

/** The sign that more elements of the whole model elect. */
function majority(all: readonly OracleTensor[]): 1 | -1 {
  const known = majorities.get(all);
  if (known) return known;
  let balance = 0;
  for (const tensor of all) {
    const kept = trimmed(tensor, all);
    tensor.base!.forEach((_, e) => {
      balance += Math.sign(kept.reduce((sum, k) => sum + k[e]!, 0));
    });
  }
  majorities.set(all, balance > 0 ? 1 : -1);
  return balance > 0 ? 1 : -1;
}
