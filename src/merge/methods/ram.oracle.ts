import { changes, type MethodContract, type Oracle, type OracleTensor } from './oracle';

export const contract: MethodContract = {
  permutation: 'invariant',
  single: 'none',
  spread: 'element',
  settings: [{ parameters: { epsilon: 0.005 } }, { parameters: { epsilon: 0 } }],
};

export const oracle: Oracle = (tensor) => reinforced(tensor, () => 1);

/** W₀ + the mean of the active changes, a lone one times λ of its model. */
export function reinforced(tensor: OracleTensor, lambda: (model: number) => number): Float64Array {
  const taus = changes(tensor);
  const epsilon = Math.fround(Number(tensor.parameters.epsilon));
  return tensor.base!.map((w, e) => {
    const active = taus.flatMap((t, i) => (Math.abs(t[e]!) > epsilon ? [i] : []));
    if (active.length === 0) return w;
    if (active.length === 1) return w + lambda(active[0]!) * taus[active[0]!]![e]!;
    return w + active.reduce((sum, i) => sum + taus[i]![e]!, 0) / active.length;
  });
}
