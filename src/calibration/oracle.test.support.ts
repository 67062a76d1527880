/** The mathematics of `importance` as in a textbook, in f64: what the engines are compared with. Rows are arrays in sequence. */

/** Σ x xᵀ over rows [rows, width]. */
export function gramOracle(x: ArrayLike<number>, rows: number, width: number): Float64Array {
  const s = new Float64Array(width * width);
  for (let r = 0; r < rows; r++) {
    for (let i = 0; i < width; i++) {
      const v = x[r * width + i]!;
      for (let j = 0; j < width; j++) s[i * width + j]! += v * x[r * width + j]!;
    }
  }
  return s;
}

interface DampedOracle {
  /** H = 2/n · S with H_jj = 1 for dead inputs. */
  h: Float64Array;
  /** H + λ · mean(diag H) · I. */
  damped: Float64Array;
  dead: boolean[];
}

export function dampedOracle(
  s: ArrayLike<number>,
  width: number,
  tokens: number,
  damping = 0.01,
): DampedOracle {
  const h = Float64Array.from(s, (v) => (v * 2) / tokens);
  const dead = Array.from({ length: width }, (_, j) => h[j * (width + 1)] === 0);
  for (const [j, d] of dead.entries()) if (d) h[j * (width + 1)] = 1;
  const mean = diagonalOf(h, width).reduce((a, b) => a + b, 0) / width;
  const damped = h.slice();
  for (let j = 0; j < width; j++) damped[j * (width + 1)]! += damping * mean;
  return { h, damped, dead };
}

export function diagonalOf(a: Float64Array, width: number): Float64Array {
  return Float64Array.from({ length: width }, (_, j) => a[j * (width + 1)]!);
}

/** L of A = L·Lᵀ. @throws RangeError when A is not positive definite */
export function choleskyOracle(a: Float64Array, width: number): Float64Array {
  const l = new Float64Array(width * width);
  for (let i = 0; i < width; i++) {
    for (let j = 0; j <= i; j++) {
      let sum = a[i * width + j]!;
      for (let k = 0; k < j; k++) sum -= l[i * width + k]! * l[j * width + k]!;
      if (i === j && !(sum > 0)) throw new RangeError(`pivot ${i} is ${sum}`);
      l[i * width + j] = i === j ? Math.sqrt(sum) : sum / l[j * width + j]!;
    }
  }
  return l;
}

/** x of A·x = b for symmetric positive definite A. */
export function solveOracle(a: Float64Array, b: ArrayLike<number>, width: number): Float64Array {
  const l = choleskyOracle(a, width);
  const x = Float64Array.from(b);
  for (let i = 0; i < width; i++) {
    for (let k = 0; k < i; k++) x[i]! -= l[i * width + k]! * x[k]!;
    x[i]! /= l[i * width + i]!;
  }
  for (let i = width - 1; i >= 0; i--) {
    for (let k = i + 1; k < width; k++) x[i]! -= l[k * width + i]! * x[k]!;
    x[i]! /= l[i * width + i]!;
  }
  return x;
}

/** A⁻¹, column by column. */
export function inverseOracle(a: Float64Array, width: number): Float64Array {
  const out = new Float64Array(width * width);
  for (let j = 0; j < width; j++) {
    const unit = new Float64Array(width);
    unit[j] = 1;
    const column = solveOracle(a, unit, width);
    for (let i = 0; i < width; i++) out[i * width + j] = column[i]!;
  }
  return out;
}

/** U of A⁻¹ = Uᵀ·U, by inverting and factoring: no reversal, so that it checks the one on the device. */
export function sparseGptFactorOracle(a: Float64Array, width: number): Float64Array {
  const l = choleskyOracle(inverseOracle(a, width), width);
  return Float64Array.from(l, (_, e) => l[(e % width) * width + Math.floor(e / width)]!);
}

/** c_j of every column; 0 for dead inputs. */
export function scoresOracle(
  s: ArrayLike<number>,
  width: number,
  tokens: number,
  score: 'wanda' | 'obs' | 'sparsegpt',
): Float64Array {
  const { h, damped, dead } = dampedOracle(s, width, tokens);
  const c = {
    wanda: () => diagonalOf(h, width),
    obs: () => diagonalOf(inverseOracle(damped, width), width).map((v) => 1 / v),
    sparsegpt: () => diagonalOf(sparseGptFactorOracle(damped, width), width).map((v) => 1 / v ** 2),
  }[score]();
  return c.map((v, j) => (dead[j] ? 0 : v));
}

/** The k largest of the entries `among`, ties by lowest index. */
export function keepOracle(scores: ArrayLike<number>, among: readonly number[], k: number): Set<number> {
  return new Set([...among].sort((a, b) => scores[b]! - scores[a]! || a - b).slice(0, k));
}

/** The x on the kept set with the least (x − τ) A (x − τ)ᵀ: A_KK x_K = (A τ)_K. */
export function leastSquaresOracle(
  tau: ArrayLike<number>,
  kept: readonly number[],
  a: Float64Array,
  width: number,
): Float64Array {
  const n = kept.length;
  const sub = Float64Array.from(
    { length: n * n },
    (_, e) => a[kept[Math.floor(e / n)]! * width + kept[e % n]!]!,
  );
  const right = Float64Array.from(kept, (i) => rowTimes(tau, a, i, width));
  const solved = solveOracle(sub, right, n);
  const out = new Float64Array(width);
  for (const [i, k] of kept.entries()) out[k] = solved[i]!;
  return out;
}

/** (x − τ) A (x − τ)ᵀ. */
export function lossOracle(
  x: ArrayLike<number>,
  tau: ArrayLike<number>,
  a: Float64Array,
  width: number,
): number {
  const d = Float64Array.from({ length: width }, (_, j) => x[j]! - tau[j]!);
  return d.reduce((sum, v, i) => sum + v * rowTimes(d, a, i, width), 0);
}

/** (ΣGᵢ)⁻¹ ΣGᵢτᵢ of one row, Gᵢ = Hᵢ + 0.01 · mean(diag Hᵢ) · I (no rule for dead inputs: the damping answers for them). */
export function gramMergeOracle(
  grams: readonly { s: ArrayLike<number>; tokens: number }[],
  rows: readonly ArrayLike<number>[],
  width: number,
): Float64Array {
  const total = new Float64Array(width * width);
  const right = new Float64Array(width);
  for (const [m, { s, tokens }] of grams.entries()) {
    const g = Float64Array.from(s, (v) => (v * 2) / tokens);
    const mean = diagonalOf(g, width).reduce((a, b) => a + b, 0) / width;
    for (let j = 0; j < width; j++) g[j * (width + 1)]! += 0.01 * mean;
    for (const [e, v] of g.entries()) total[e]! += v;
    for (let i = 0; i < width; i++) right[i]! += rowTimes(rows[m]!, g, i, width);
  }
  return solveOracle(total, right, width);
}

/**
 * W of Σᵢ Wᵢ(Cᵢ + rᵢI) = W Σᵢ (Hᵢ + rᵢI), row by row: Hᵢ = 2/n·XᵢᵐᵀXᵢᵐ, Cᵢ = 2/n·XᵢᵀXᵢᵐ, rᵢ = 0.01 · mean(diag Hᵢ).
 * @param models inputs in the merged model and in the contributor, [rows, width], and the row Wᵢ
 */
export function matchedOutputsOracle(
  models: readonly {
    merged: ArrayLike<number>;
    own: ArrayLike<number>;
    row: ArrayLike<number>;
    /** What is put out on top, by token. */
    more?: ArrayLike<number>;
  }[],
  width: number,
): Float64Array {
  const total = new Float64Array(width * width);
  const right = new Float64Array(width);
  for (const { merged, own, row, more } of models) {
    const tokens = merged.length / width;
    const h = gramOracle(merged, tokens, width).map((v) => (v * 2) / tokens);
    const ridge = (0.01 * diagonalOf(h, width).reduce((a, b) => a + b, 0)) / width;
    for (const [e, v] of h.entries()) total[e]! += v;
    for (let j = 0; j < width; j++) {
      total[j * (width + 1)]! += ridge;
      right[j]! += ridge * row[j]!;
    }
    for (let t = 0; t < tokens; t++) {
      let out = more?.[t] ?? 0;
      for (let j = 0; j < width; j++) out += own[t * width + j]! * row[j]!;
      for (let j = 0; j < width; j++) right[j]! += ((out * 2) / tokens) * merged[t * width + j]!;
    }
  }
  return solveOracle(total, right, width);
}

function rowTimes(x: ArrayLike<number>, a: Float64Array, i: number, width: number): number {
  let sum = 0;
  for (let j = 0; j < width; j++) sum += a[i * width + j]! * x[j]!;
  return sum;
}
