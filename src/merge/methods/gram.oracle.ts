import { changes, type MethodContract, numbers, type Oracle } from './oracle';

export const contract: MethodContract = {
  permutation: 'invariant',
  single: 'rounded',
  spread: 'element',
  settings: [
    { parameters: { lambda: 1.3 } },
    { parameters: { lambda: 1.3, sum: 0.2 }, models: [{ weight: 2 }, { weight: 0.5 }, { weight: 0 }] },
  ],
};

/** Mean of the task vectors and their sum, each by the weights, where nothing was solved. Solutions have an oracle of their own (src/calibration). */
export const oracle: Oracle = (tensor) => {
  const taus = changes(tensor);
  const weights = numbers(tensor.models, 'weight');
  const count = weights.reduce((sum, weight) => sum + weight, 0);
  return tensor.base!.map((w, e) => {
    const all = taus.reduce((sum, tau, i) => sum + weights[i]! * tau[e]!, 0);
    const { lambda, sum = 0 } = tensor.parameters;
    return w + (Number(lambda) * all) / count + Number(sum) * all;
  });
};
