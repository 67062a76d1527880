import { addUp, byMagnitude, changes, dot, type MethodContract, masked, type Oracle } from './oracle';

export const contract: MethodContract = {
  permutation: 'invariant',
  single: 'none',
  spread: 'tensor',
  settings: [{ parameters: { select_topk: 0.3 } }, { parameters: { select_topk: 0, semantics: 'paper' } }],
};

export const oracle: Oracle = (tensor) => {
  const { select_topk, semantics } = tensor.parameters;
  const share = Number(select_topk);
  const floor = semantics === 'mergekit' ? 1e-6 : 0;
  const taus = changes(tensor);
  const n = tensor.base!.length;
  const variance = Float64Array.from({ length: n }, (_, e) => {
    const at = taus.map((t) => t[e]!);
    const mean = at.reduce((a, b) => a + b, 0) / at.length;
    return at.every((t) => t === at[0]) ? 0 : at.reduce((sum, t) => sum + (t - mean) ** 2, 0) / at.length;
  });
  const open = new Set<number>();
  let kept = taus;
  if (share < 1) {
    const order = byMagnitude(variance);
    const k = Math.floor(share * variance.filter((v) => v !== 0).length);
    const mask = new Uint8Array(n);
    for (const e of order.slice(0, k)) mask[e] = 1;
    const cut = variance[order[k - 1] ?? 0]!;
    // the score is a rounded sum: what lies this near the cut may fall on either side
    variance.forEach((v, e) => {
      if (k > 0 && Math.abs(v - cut) <= 1e-5 * cut) open.add(e);
    });
    kept = taus.map((t) => masked(t, mask));
  }
  const energies = kept.map((t) => dot(t, t) / n);
  const sum = energies.reduce((a, b) => a + b, 0);
  const weights = energies.map((x) => (sum === 0 || sum < floor ? 1 / energies.length : x / sum));
  const merged = addUp(tensor, kept, { weights, ballots: 'values', divide: 'weights', floor, lambda: 1 });
  return { values: merged.values, open: new Set([...open, ...merged.open]) };
};
