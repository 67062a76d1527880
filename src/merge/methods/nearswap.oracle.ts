import type { MethodContract, Oracle } from './oracle';

export const contract: MethodContract = {
  permutation: 'ordered',
  single: 'none',
  spread: 'element',
  settings: [{ parameters: { t: 0.005 } }, { parameters: { t: 1e-7 } }],
};

export const oracle: Oracle = ({ base, models: [model], parameters }) =>
  base!.map((a, e) => {
    const b = model!.weights[e]!;
    const w = a === b ? 1 : Math.min(1, Number(parameters.t) / Math.abs(a - b));
    return w * b + (1 - w) * a;
  });
