import { type MethodContract, matrixOracle, type Oracle, singular, times } from './oracle';

export const contract: MethodContract = {
  permutation: 'invariant',
  single: 'none',
  spread: 'element',
  settings: [{ parameters: { lambda: 0.7, rank: 9 } }],
};

export const oracle: Oracle = matrixOracle((taus, { rows, cols }, { rank }) => {
  const sum = taus[0]!.map((_, e) => taus.reduce((total, tau) => total + tau[e]!, 0));
  const found = singular(sum, rows, cols).slice(0, Number(rank));
  const level = found.reduce((total, { s }) => total + s, 0) / found.length;
  return times(
    found.map(({ u }) => u.map((x) => x * level)),
    found.map(({ v }) => v),
  );
});
