import { addUp, changes, numbers, type Oracle } from './oracle';

export const oracle: Oracle = (tensor) =>
  addUp(tensor, changes(tensor), {
    weights: numbers(tensor.models, 'weight'),
    divide: tensor.parameters.normalize ? 'weights' : 'no',
    lambda: Number(tensor.parameters.lambda),
  });
