/** Scalar products of a few vectors, as the coefficients of a merge are computed from them. */

/** ⟨vᵢ, vⱼ⟩ of `count` vectors. */
export interface Products {
  readonly count: number;
  at(i: number, j: number): number;
}

/** Products over f64 sums laid out by pairs i ≤ j in row order; `from` is the first vector of interest. */
export function productsOf(sums: ArrayLike<number>, vectors: number, from = 0): Products {
  return {
    count: vectors - from,
    at(i, j) {
      const a = Math.min(i, j) + from;
      const b = Math.max(i, j) + from;
      return sums[a * vectors - (a * (a - 1)) / 2 + (b - a)]!;
    },
  };
}

export function norm(products: Products, i: number): number {
  return Math.sqrt(products.at(i, i));
}

/** ‖Σ cᵢvᵢ‖; rounding below zero counts as zero. */
export function combinedNorm(products: Products, c: readonly number[]): number {
  return Math.sqrt(Math.max(0, combinedProduct(products, c, c)));
}

/** ⟨Σ aᵢvᵢ, Σ bⱼvⱼ⟩ */
export function combinedProduct(products: Products, a: readonly number[], b: readonly number[]): number {
  let sum = 0;
  for (let i = 0; i < a.length; i++) {
    for (let j = 0; j < b.length; j++) if (a[i] !== 0 && b[j] !== 0) sum += a[i]! * b[j]! * products.at(i, j);
  }
  return sum;
}

/** Angle between two unit vectors of this product, in [0, π]. */
export function angle(cosine: number): number {
  return Math.acos(Math.max(-1, Math.min(1, cosine)));
}
