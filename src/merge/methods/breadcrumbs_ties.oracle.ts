import { withoutEnds } from './breadcrumbs.oracle';
import { addUp, numbers, type Oracle } from './oracle';

export const oracle: Oracle = (tensor) =>
  addUp(tensor, withoutEnds(tensor), {
    weights: numbers(tensor.models, 'weight'),
    ballots: 'weighted',
    divide: tensor.parameters.normalize ? 'weights' : 'no',
    lambda: Number(tensor.parameters.lambda),
  });
