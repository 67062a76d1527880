import type { MethodContract, Oracle } from './oracle';

export const contract: MethodContract = {
  permutation: 'ordered',
  single: 'none',
  spread: 'element',
  settings: [{ models: [{ scale: 0.37 }] }],
};

export const oracle: Oracle = ({ models: [model] }) =>
  model!.weights.map((w) => w * Number(model!.parameters.scale));
