import { contract as breadcrumbs, changesWithoutEnds } from './breadcrumbs.oracle';
import { addUp, type MethodContract, numbers, type Oracle } from './oracle';

export const contract: MethodContract = {
  ...breadcrumbs,
  settings: [
    { models: [{ density: 0.4 }, { density: 0.25, gamma: 0.1 }, { density: 0.95, gamma: 0.2 }] },
    { parameters: { normalize: true, rescale: '1/density' }, models: [{ density: 0.5 }, { density: 0.3 }] },
  ],
};

export const oracle: Oracle = (tensor) =>
  addUp(tensor, changesWithoutEnds(tensor), {
    weights: numbers(tensor.models, 'weight'),
    ballots: 'weighted',
    divide: tensor.parameters.normalize ? 'weights' : 'no',
    lambda: Number(tensor.parameters.lambda),
  });
