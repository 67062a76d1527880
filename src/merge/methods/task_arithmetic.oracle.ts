import { addUp, changes, type MethodContract, numbers, type Oracle } from './oracle';

export const contract: MethodContract = {
  permutation: 'invariant',
  single: 'rounded',
  spread: 'element',
  settings: [{ parameters: { normalize: true, lambda: 0.9 }, models: [{ weight: -0.2 }] }],
};

export const oracle: Oracle = (tensor) =>
  addUp(tensor, changes(tensor), {
    weights: numbers(tensor.models, 'weight'),
    divide: tensor.parameters.normalize ? 'weights' : 'no',
    lambda: Number(tensor.parameters.lambda),
  });
