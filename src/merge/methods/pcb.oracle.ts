import { byMagnitude, changes, count, type MethodContract, type Oracle } from './oracle';

export const contract: MethodContract = {
  permutation: 'invariant',
  single: 'none',
  spread: 'tensor',
  settings: [
    { models: [{ density: 0.4 }, { density: 0.25 }, { density: 0.7 }] },
    { parameters: { lambda: 0.8 }, models: [{ density: 0 }, { density: 0.1 }, { density: 0.2 }] },
  ],
};

/** Balances this near to each other, relative to their size, change places by rounding. */
const NEAR = 1e-5;
/** Shares of an element that are this small a part of their balances, all of them, are ratios of rounded differences. */
const FAINT = 10;

export const oracle: Oracle = (tensor) => {
  const taus = changes(tensor);
  const n = tensor.base!.length;
  const sum = taus[0]!.map((_, e) => taus.reduce((total, tau) => total + tau[e]!, 0));
  const open = new Set<number>();
  const models = taus.map((tau, i) => {
    const most = Math.abs(tau[byMagnitude(tau)[Math.floor(n / 10_000)] ?? 0] ?? 0);
    const clipped = tau.map((t) => Math.min(Math.max(t, -most), most));
    const balance = clipped.map((t, e) => {
      const own = Math.exp(taus.length * (most > 0 ? t / most : 0) ** 2);
      return Math.max(0, own * tau[e]! * sum[e]!);
    });
    const order = byMagnitude(balance);
    const kept = count(Number(tensor.models[i]!.parameters.density), n);
    const least = kept < n ? balance[order[kept]!]! : 0;
    const near = order.filter((e) => balance[e]! > 0 && Math.abs(balance[e]! - least) <= NEAR * least);
    if (near.length > 1) for (const e of near) open.add(e);
    const range = balance[order[0] ?? 0]! - least;
    const shares = balance.map((b) => (kept > 0 && b > least ? (range > 0 ? (b - least) / range : 1) : 0));
    return { clipped, shares, faint: (e: number) => (shares[e]! > 0 ? balance[e]! / range : 0) };
  });
  const values = tensor.base!.map((w, e) => {
    const keeping = models.filter(({ shares }) => shares[e]! > 0);
    const total = keeping.reduce((all, { shares }) => all + shares[e]!, 0);
    const faint = keeping.reduce((all, model) => all + model.faint(e), 0);
    if (keeping.length > 1 && faint > FAINT * total) open.add(e);
    const mixed = keeping.reduce((all, { shares, clipped }) => all + shares[e]! * clipped[e]!, 0);
    return total > 0 ? w + (Number(tensor.parameters.lambda) * mixed) / total : w;
  });
  return { values, open };
};
