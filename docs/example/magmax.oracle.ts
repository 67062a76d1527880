import { byMagnitude, changes, type MethodContract, type Oracle } from '../../src/merge/methods/oracle';

export const contract: MethodContract = {
  permutation: 'invariant',
  single: 'none',
  spread: 'element',
  settings: [{ parameters: { lambda: 0.5 } }],
};

export const oracle: Oracle = (tensor) => {
  const taus = changes(tensor);
  return tensor.base!.map((w, e) => {
    const at = taus.map((t) => t[e]!);
    return w + Number(tensor.parameters.lambda) * at[byMagnitude(at)[0]!]!;
  });
};
