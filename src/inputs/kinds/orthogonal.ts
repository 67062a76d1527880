/** Orthogonal matrices from skew-symmetric ones, and rows rotated block by block. */
import { multiply, type RowChange } from './kind';

/** (I − S)(I + S)⁻¹ of a skew-symmetric S [n, n], by Gauss elimination in f64 (PEFT: torch.linalg.solve, left=False). */
export function cayley(skew: Float64Array, n: number): Float64Array {
  // X (I + S) = I − S; transposed: (I − S) Xᵀ = I + S
  const left = skew.map((s, i) => (i % (n + 1) === 0 ? 1 : 0) - s);
  const right = skew.map((s, i) => (i % (n + 1) === 0 ? 1 : 0) + s);
  for (let pivot = 0; pivot < n; pivot++) {
    let best = pivot;
    for (let i = pivot + 1; i < n; i++) {
      if (Math.abs(left[i * n + pivot]!) > Math.abs(left[best * n + pivot]!)) best = i;
    }
    for (const m of [left, right]) {
      const row = m.slice(pivot * n, (pivot + 1) * n);
      m.copyWithin(pivot * n, best * n, (best + 1) * n);
      m.set(row, best * n);
    }
    for (let i = 0; i < n; i++) {
      if (i === pivot) continue;
      const factor = left[i * n + pivot]! / left[pivot * n + pivot]!;
      for (let j = 0; j < n; j++) {
        left[i * n + j]! -= factor * left[pivot * n + j]!;
        right[i * n + j]! -= factor * right[pivot * n + j]!;
      }
    }
  }
  return right.map((_, i) => {
    const [row, column] = [Math.floor(i / n), i % n];
    return right[column * n + row]! / left[column * (n + 1)]!;
  });
}

/** I + 2S + 2S² + … + 2Sᵗ⁻² + Sᵗ⁻¹: the Cayley transform as a Neumann series, three terms as PEFT has them (as four). */
export function cayleySeries(skew: Float64Array, n: number, terms: number): Float64Array {
  const out = Float64Array.from(skew, (_, i) => (i % (n + 1) === 0 ? 1 : 0));
  const last = terms > 2 ? Math.max(terms, 4) - 1 : terms - 1;
  let power: Float64Array = out.slice();
  for (let k = 1; k <= last; k++) {
    power = multiply(power, skew, n);
    const factor = k === last && terms > 2 ? 1 : 2;
    for (let i = 0; i < out.length; i++) out[i]! += factor * power[i]!;
  }
  return out;
}

/** x ← Q_b · x_b for every block b of a row; one block serves all where there is only one. */
export function rotateBlocks(blocks: readonly Float64Array[], n: number): RowChange {
  const rotated = new Float64Array(n);
  return (row) => {
    for (let at = 0; at < row.length; at += n) {
      const block = blocks[blocks.length === 1 ? 0 : at / n]!;
      for (let i = 0; i < n; i++) {
        let sum = 0;
        for (let j = 0; j < n; j++) sum += block[i * n + j]! * row[at + j]!;
        rotated[i] = sum;
      }
      row.set(rotated, at);
    }
  };
}
