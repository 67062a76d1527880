import { changes, type MethodContract, type Oracle, vectorsOf } from './oracle';

export const contract: MethodContract = {
  permutation: 'ordered',
  single: 'none',
  spread: 'tensor',
  settings: [],
};

export const oracle: Oracle = (tensor) => {
  const base = tensor.base!;
  const tau = changes(tensor)[0]!;
  const n = base.length;
  const importance = new Float64Array(n);
  for (const row of vectorsOf(tensor.shape, 'rows')) {
    const p = softmax(row.map((e) => base[e]! + tau[e]!)).map((x) => x + 1e-8);
    const q = softmax(row.map((e) => base[e]!)).map((x) => x + 1e-8);
    const divergence = p.reduce((sum, x, i) => sum + x * Math.log(x / q[i]!), 0);
    for (const e of row) importance[e] = Math.abs(tau[e]!) * divergence;
  }
  const sorted = importance.slice().sort();
  const quantile = (f: number) => sorted[Math.floor(f * (n - 1))]!;
  const cut = quantile(0.5) + 1.5 * (quantile(0.75) - quantile(0.25));
  const values = base.map((w, e) => (importance[e]! >= cut ? w + tau[e]! : w));
  // this oracle's divergence is a sum that cancels; the pipeline's is not, but its score is rounded to f32
  const open = new Set<number>();
  importance.forEach((x, e) => {
    if (Math.abs(x - cut) <= 1e-4 * cut) open.add(e);
  });
  return { values, open };
};

function softmax(values: number[]): number[] {
  const top = Math.max(...values);
  const powers = values.map((v) => Math.exp(v - top));
  const sum = powers.reduce((a, b) => a + b, 0);
  return powers.map((x) => x / sum);
}
