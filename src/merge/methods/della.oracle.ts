import { prunedByRank } from './della_linear.oracle';
import { addUp, numbers, type Oracle } from './oracle';

export const oracle: Oracle = (tensor) =>
  addUp(tensor, prunedByRank(tensor), {
    weights: numbers(tensor.models, 'weight'),
    ballots: 'weighted',
    divide: tensor.parameters.normalize ? 'weights' : 'no',
    lambda: Number(tensor.parameters.lambda),
  });
