import { type MethodContract, matrixOracle, type Oracle, polarFactor, singular, times } from './oracle';

export const contract: MethodContract = {
  permutation: 'invariant',
  single: 'none',
  spread: 'element',
  settings: [{ parameters: { common: 0.5 } }],
};

export const oracle: Oracle = matrixOracle((taus, { rows, cols }, { rank, common: share }) => {
  const all = Math.min(Number(rank), rows, cols);
  const own = Math.round((all - Math.floor(all * Number(share))) / taus.length);
  const sum = taus[0]!.map((_, e) => taus.reduce((total, tau) => total + tau[e]!, 0));
  const common = singular(sum, rows, cols).slice(0, Math.max(0, all - own * taus.length));
  const rest = taus.map((tau) => {
    const left = tau.slice();
    for (const { u } of common) {
      for (let j = 0; j < cols; j++) {
        const along = u.reduce((sum, x, i) => sum + x * tau[i * cols + j]!, 0);
        for (let i = 0; i < rows; i++) left[i * cols + j]! -= along * u[i]!;
      }
    }
    return singular(left, rows, cols).slice(0, own);
  });
  const parts = [...rest.flat(), ...common];
  const level = parts.reduce((total, { s }) => total + s, 0) / parts.length;
  const u = polarFactor(parts.map(({ u }) => u));
  const v = polarFactor(parts.map(({ v }) => v));
  return times(
    u.map((x) => x.map((value) => value * level)),
    v,
  );
});
