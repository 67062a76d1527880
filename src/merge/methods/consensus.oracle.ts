import { changes, type MethodContract, type Oracle } from './oracle';

export const contract: MethodContract = {
  permutation: 'invariant',
  single: 'none',
  spread: 'element',
  settings: [{ parameters: { tall: 0.7, agree: 1, lambda: 0.8 } }, { parameters: { agree: 3 } }],
};

/** What is claimed is compared in f32: stored in 16 bits, changes stand in ratios of small whole numbers, and often in that of t. */
export const oracle: Oracle = (tensor) => {
  const { tall, agree, lambda } = tensor.parameters;
  const taus = changes(tensor);
  return tensor.base!.map((w, e) => {
    const sum = taus.reduce((total, tau) => Math.fround(total + tau[e]!), 0);
    const others = (tau: Float64Array) => Math.abs(Math.fround(sum - tau[e]!));
    const claims = taus.filter(
      (tau) => Math.abs(tau[e]!) >= Math.fround(Math.fround(Number(tall)) * others(tau)),
    );
    return claims.length >= Number(agree) ? w + Number(lambda) * sum : w;
  });
};
