import { contract as dellaLinear, prunedByRank } from './della_linear.oracle';
import { addUp, type MethodContract, numbers, type Oracle } from './oracle';

export const contract: MethodContract = {
  ...dellaLinear,
  settings: [
    { models: [{ density: 0.4, epsilon: 0.1 }, { density: 0.25 }, { density: 0.7, epsilon: 0.29 }] },
    { parameters: { rescale: '1/probability', lambda: 1.1 }, models: [{ density: 0.3 }, { density: 0.5 }] },
    {
      parameters: { rescale: 'none' },
      models: [
        { density: 0, epsilon: 0 },
        { density: 0.6, epsilon: 0 },
      ],
    },
  ],
};

export const oracle: Oracle = (tensor) =>
  addUp(tensor, prunedByRank(tensor), {
    weights: numbers(tensor.models, 'weight'),
    ballots: 'weighted',
    divide: tensor.parameters.normalize ? 'weights' : 'no',
    lambda: Number(tensor.parameters.lambda),
  });
