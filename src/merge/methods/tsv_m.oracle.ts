import { type MethodContract, matrixOracle, type Oracle, polarFactor, singular, times } from './oracle';

export const contract: MethodContract = {
  permutation: 'invariant',
  single: 'none',
  spread: 'element',
  settings: [{ parameters: { lambda: 1.3 } }, { parameters: { rank: 7 } }],
};

export const oracle: Oracle = matrixOracle((taus, { rows, cols }, { rank }) => {
  const k = Math.min(Number(rank), Math.max(1, Math.floor(Math.min(rows, cols) / taus.length)));
  const parts = taus.flatMap((tau) => singular(tau, rows, cols).slice(0, k));
  const u = polarFactor(parts.map(({ u }) => u));
  const v = polarFactor(parts.map(({ v }) => v));
  return times(
    parts.map(({ s }, i) => u[i]!.map((x) => x * s)),
    v,
  );
});
