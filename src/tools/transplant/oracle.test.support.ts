/** Making rows by loops over plain lists in f64: least squares by Gaussian elimination with pivots at every step. */
import type { Rows } from './products';

export const rowsOf = ({ values, count, width }: Rows): number[][] =>
  Array.from({ length: count }, (_, i) => [...values.subarray(i * width, (i + 1) * width)]);

const dot = (a: readonly number[], b: readonly number[]) => a.reduce((sum, v, i) => sum + v * b[i]!, 0);
const norm = (a: readonly number[]) => Math.sqrt(dot(a, a));

function eliminated(a: number[][], b: number[]): number[] {
  const n = b.length;
  const m = a.map((row, i) => [...row, b[i]!]);
  for (let c = 0; c < n; c++) {
    let pivot = c;
    for (let r = c; r < n; r++) if (Math.abs(m[r]![c]!) > Math.abs(m[pivot]![c]!)) pivot = r;
    [m[c], m[pivot]] = [m[pivot]!, m[c]!];
    for (let r = 0; r < n; r++) {
      if (r === c) continue;
      const factor = m[r]![c]! / m[c]![c]!;
      for (let j = c; j <= n; j++) m[r]![j]! -= factor * m[c]![j]!;
    }
  }
  return m.map((row, i) => row[n]! / row[i]!);
}

const summed = (rows: readonly number[][], weights: readonly number[]) =>
  rows[0]!.map((_, c) => rows.reduce((sum, row, i) => sum + weights[i]! * row[c]!, 0));

export function pursuedByLoops(x: readonly number[], dictionary: readonly number[][], k: number) {
  let rows: number[] = [];
  let weights: number[] = [];
  let rest = [...x];
  while (rows.length < Math.min(k, dictionary.length) && norm(rest) > 1e-7 * norm(x)) {
    const sizes = dictionary.map((row, i) => (rows.includes(i) ? -1 : Math.abs(dot(row, rest))));
    rows = [...rows, sizes.indexOf(Math.max(...sizes))];
    const chosen = rows.map((row) => dictionary[row]!);
    weights = eliminated(
      chosen.map((a) => chosen.map((b) => dot(a, b))),
      chosen.map((a) => dot(a, x)),
    );
    const sum = summed(chosen, weights);
    rest = x.map((value, i) => value - sum[i]!);
  }
  return { rows, weights, left: norm(rest) / norm(x) };
}

export function nearestByLoops(x: readonly number[], dictionary: readonly number[][], k: number) {
  const far = dictionary.map((row, at) => ({ at, far: norm(row.map((value, i) => value - x[i]!)) }));
  const close = far.sort((a, b) => a.far - b.far || a.at - b.at).slice(0, k);
  const inverse = close.map((one) => 1 / Math.max(one.far, 1e-6));
  const sum = inverse.reduce((a, b) => a + b, 0);
  return { rows: close.map(({ at }) => at), weights: inverse.map((value) => value / sum) };
}
