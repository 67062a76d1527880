import { type MethodContract, numbers, type Oracle } from './oracle';

export const contract: MethodContract = {
  permutation: 'invariant',
  single: 'bytes',
  spread: 'element',
  settings: [{ parameters: { normalize: false }, models: [{ weight: -0.3 }] }],
};

export const oracle: Oracle = ({ models, parameters }) => {
  const weights = numbers(models, 'weight');
  const total = parameters.normalize ? weights.reduce((a, b) => a + b, 0) : 1;
  return models[0]!.weights.map(
    (_, e) => models.reduce((s, m, i) => s + weights[i]! * m.weights[e]!, 0) / total,
  );
};
