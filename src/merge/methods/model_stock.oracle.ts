import { changes, dot, length, type MethodContract, type Oracle, vectorsOf } from './oracle';

export const contract: MethodContract = {
  permutation: 'invariant',
  single: 'none',
  spread: 'tensor',
  settings: [],
};

export const oracle: Oracle = (tensor) => {
  const { base, parameters, shape } = tensor;
  const taus = changes(tensor);
  const n = taus.length;
  const out = base!.slice();
  for (const vector of vectorsOf(shape, parameters.filter_wise ? 'rows' : 'tensor')) {
    const parts = taus.map((t) => vector.map((e) => t[e]!));
    const cosines: number[] = [];
    for (let i = 0; i < n; i++) {
      for (let j = i + 1; j < n; j++) {
        const size = Math.max(length(parts[i]!) * length(parts[j]!), 1e-6);
        cosines.push(Math.max(-1, Math.min(1, dot(parts[i]!, parts[j]!) / size)));
      }
    }
    const cosine = cosines.reduce((a, b) => a + b, 0) / cosines.length;
    const divisor = 1 + (n - 1) * cosine;
    const t = divisor > 1e-9 ? (n * cosine) / divisor : 0;
    vector.forEach((e, i) => {
      out[e]! += (t * parts.reduce((s, p) => s + p[i]!, 0)) / n;
    });
  }
  return out;
};
