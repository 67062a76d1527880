import { changes, type MethodContract, type Oracle } from './oracle';
import { reinforced } from './ram.oracle';

export const contract: MethodContract = {
  permutation: 'invariant',
  single: 'none',
  spread: 'element',
  settings: [{ parameters: { epsilon: 0.005, r: 0.2, alpha: 0.5 } }],
};

export const oracle: Oracle = (tensor) => {
  const { epsilon, r, alpha } = tensor.parameters;
  const least = Math.fround(Number(epsilon));
  const taus = changes(tensor);
  const unique = taus.map(() => 0);
  const shared = taus.map(() => 0);
  for (const e of tensor.base!.keys()) {
    const active = taus.flatMap((t, i) => (Math.abs(t[e]!) > least ? [i] : []));
    for (const i of active) (active.length > 1 ? shared : unique)[i]!++;
  }
  return reinforced(tensor, (i) => {
    const ratio = shared[i]! / Math.max(unique[i]!, Number(epsilon));
    return 1 + Number(r) * Math.min(Number(alpha), Math.max(0, ratio));
  });
};
