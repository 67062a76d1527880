/** Means, their standard errors, and whether two models differ on the same items. */

import { mean } from '../linalg/numbers';

/** Standard error of the mean, from the sample's deviation (n − 1); null for a single value. */
export function meanStderr(values: readonly number[]): number | null {
  const n = values.length;
  if (n < 2) return null;
  const mu = mean(values);
  return Math.sqrt(values.reduce((sum, v) => sum + (v - mu) ** 2, 0) / (n - 1) / n);
}

export interface PairedTest {
  /** Mean of b − a over the items that both have, and its standard error. */
  difference: number;
  stderr: number | null;
  items: number;
  /** Items where a alone is right, and where b alone is. */
  onlyA: number;
  onlyB: number;
  /** Two-sided: the chance of a difference at least as large were the models equally good. */
  p: number;
  test: 'mcnemar' | 'bootstrap';
}

/** Resamples of {@link bootstrapP}. */
const RESAMPLES = 10_000;

/**
 * Compares two models on the same items: McNemar's exact test where every value is 0 or 1, else a paired bootstrap of the
 * mean difference.
 * @param pairs values of a and b, item by item
 */
export function pairedTest(pairs: readonly (readonly [a: number, b: number])[]): PairedTest {
  const differences = pairs.map(([a, b]) => b - a);
  const isBinary = pairs.every((pair) => pair.every((v) => v === 0 || v === 1));
  const onlyA = differences.filter((d) => d < 0).length;
  const onlyB = differences.filter((d) => d > 0).length;
  return {
    difference: pairs.length > 0 ? mean(differences) : 0,
    stderr: meanStderr(differences),
    items: pairs.length,
    onlyA,
    onlyB,
    p: isBinary ? mcnemarP(onlyA, onlyB) : bootstrapP(differences),
    test: isBinary ? 'mcnemar' : 'bootstrap',
  };
}

/**
 * McNemar's exact test: of the items that only one gets right, each is either one's with the same chance.
 * p = min(1, 2 Σ_{i ≤ min(b, c)} C(n, i) / 2ⁿ), n = b + c (McNemar 1947; Liddell 1983).
 */
export function mcnemarP(b: number, c: number): number {
  const n = b + c;
  let term = -n * Math.LN2;
  let tail = 0;
  for (let i = 0; i <= Math.min(b, c); i++) {
    tail += Math.exp(term);
    term += Math.log(n - i) - Math.log(i + 1);
  }
  return Math.min(1, 2 * tail);
}

/**
 * Two-sided p of a mean of 0, by resampling the differences shifted to it (Efron and Tibshirani 1993, 16.4), with a
 * fixed seed: the same differences give the same p.
 */
function bootstrapP(differences: readonly number[]): number {
  const n = differences.length;
  if (n === 0) return 1;
  const observed = mean(differences);
  const centered = differences.map((d) => d - observed);
  let state = 0x9e3779b9;
  // xorshift32 (Marsaglia 2003)
  const next = () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) / 2 ** 32;
  };
  let asFar = 0;
  for (let r = 0; r < RESAMPLES; r++) {
    let sum = 0;
    for (let i = 0; i < n; i++) sum += centered[Math.floor(next() * n)]!;
    if (Math.abs(sum / n) >= Math.abs(observed)) asFar++;
  }
  return (asFar + 1) / (RESAMPLES + 1);
}
