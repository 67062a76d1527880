import { dropped } from './dare_linear.oracle';
import { addUp, inSpace, type MethodContract, numbers, type Oracle, type OracleTensor } from './oracle';

export const contract: MethodContract = {
  permutation: 'invariant',
  single: 'rounded',
  spread: 'tensor',
  settings: [
    { models: [{ density: 0.4 }, { density: 0.25 }, { density: 0.7 }] },
    { parameters: { space: 'knots' }, models: [{ density: 0.4 }, { density: 0.5 }, { density: 0.3 }] },
    { parameters: { semantics: 'paper', lambda: 0.9 }, models: [{ density: 0.4 }, { density: 0.25 }] },
    { parameters: { semantics: 'peft' }, models: [{ density: 0.4 }, { weight: -0.3, density: 0.25 }] },
    { parameters: { normalize: true, rescale: '1/density' }, models: [{ density: 0.3 }] },
  ],
};

export const oracle: Oracle = (tensor, all) => inSpace(tensor, all, inWeights);

const inWeights: Oracle = (tensor, all) => {
  const { parameters } = tensor;
  const weights = numbers(tensor.models, 'weight');
  const lambda = Number(parameters.lambda);
  if (parameters.semantics === 'mergekit') {
    const divide = parameters.normalize ? 'weights' : 'no';
    return addUp(tensor, dropped(tensor), { weights, ballots: 'weighted', divide, lambda });
  }
  const ballots = parameters.majority_sign_method === 'frequency' ? 'signs' : 'values';
  const zero = parameters.semantics === 'paper' ? majority(all) : 1;
  return addUp(tensor, dropped(tensor), { weights, ballots, divide: 'count', zero, lambda });
};

/** The sign that more elements of the whole model elect. */
function majority(all: readonly OracleTensor[]): 1 | -1 {
  let balance = 0;
  for (const tensor of all) {
    const kept = dropped(tensor);
    tensor.base!.forEach((_, e) => {
      balance += Math.sign(kept.reduce((sum, k) => sum + k[e]!, 0));
    });
  }
  return balance > 0 ? 1 : -1;
}
