/**
 * An oracle is a method once more, in f64 and plain loops, written from docs/methods.md and not from the code it judges. It
 * sorts where the pipeline counts. Every method has one beside its file, `<id>.oracle.ts`; the steps that several share are
 * here.
 */
import { maskKey, philox } from '../../backend/philox';
import type { ResolvedParameters } from '../plan/plan';

export interface OracleTensor {
  name: string;
  shape: readonly number[];
  /** W₀ as stored. */
  base?: Float64Array;
  /** The contributors' Wᵢ as stored. */
  models: { id: string; weights: Float64Array; parameters: ResolvedParameters }[];
  parameters: ResolvedParameters;
  seed: number;
}

/** A result, and the elements whose selection hangs on the last bits of a score that is itself a rounded result. */
export interface OracleResult {
  values: Float64Array;
  open: ReadonlySet<number>;
}

/** `all`: every tensor of the model, for what is measured on all of them. */
export type Oracle = (tensor: OracleTensor, all: readonly OracleTensor[]) => Float64Array | OracleResult;

/** Properties that do not follow from a method's other fields and that its contract tests check as declared. */
export interface MethodContract {
  /** Does the result stay the same (up to rounding) when contributors swap places? */
  permutation: 'invariant' | 'ordered';
  /**
   * One model of weight 1, the others 0: `bytes` gives that model to the bit, `rounded` within one f32 rounding
   * (W₀ + (W − W₀) rounds twice), `none` where there are no weights.
   */
  single: 'bytes' | 'rounded' | 'none';
  /** How far a NaN or infinity that is carried through spreads: its own `element`, its `row`, or the whole `tensor`. */
  spread: 'element' | 'row' | 'tensor';
  /** Settings the tests try beside the defaults; settings not given have their default or a value of the tests'. */
  settings: readonly MethodSettings[];
}

/** Values by parameter name, method-wide and model by model. */
export interface MethodSettings {
  parameters?: ResolvedParameters;
  models?: readonly ResolvedParameters[];
}

/** τᵢ = Wᵢ − W₀, rounded to f32 by its definition. */
export function changes({ base, models }: OracleTensor): Float64Array[] {
  return models.map(({ weights }) => weights.map((w, e) => Math.fround(w - base![e]!)));
}

export function numbers(models: OracleTensor['models'], parameter: string): number[] {
  return models.map((m) => Number(m.parameters[parameter]));
}

/** 1 for the k largest magnitudes, the lowest index first among equals. */
export function largest(values: ArrayLike<number>, k: number): Uint8Array {
  const mask = new Uint8Array(values.length);
  for (const e of byMagnitude(values).slice(0, k)) mask[e] = 1;
  return mask;
}

/** Indices by magnitude, largest first, the lowest index first among equals. */
export function byMagnitude(values: ArrayLike<number>): number[] {
  return Array.from({ length: values.length }, (_, e) => e).sort(
    (a, b) => Math.abs(values[b]!) - Math.abs(values[a]!) || a - b,
  );
}

/** k = clamp(⌊ρn⌋, 1, n), 0 for ρ = 0. */
export function count(density: number, n: number): number {
  return density <= 0 ? 0 : Math.min(n, Math.max(1, Math.floor(density * n)));
}

/** The (⌊ρN⌋ + 1)-th largest |τ| of a model over all tensors; infinite for ρ = 0. */
export function threshold(all: readonly OracleTensor[], model: number, density: number): number {
  if (density === 0) return Number.POSITIVE_INFINITY;
  const sizes = all.flatMap((tensor) => [...changes(tensor)[model]!].map(Math.abs)).sort((a, b) => b - a);
  return sizes[Math.min(sizes.length - 1, Math.floor(density * sizes.length))]!;
}

/** Uniform numbers in [0, 2³²), one per element, from the counter-based generator. */
export function draws(
  { seed, name }: Pick<OracleTensor, 'seed' | 'name'>,
  id: string,
  n: number,
): Uint32Array {
  const [k0, k1] = maskKey(seed, id, name);
  const words = new Uint32Array(4);
  return Uint32Array.from({ length: n }, (_, e) => {
    if (e % 4 === 0) philox(e / 4, 0, k0, k1, words);
    return words[e % 4]!;
  });
}

export function masked(values: Float64Array, mask: ArrayLike<number>): Float64Array {
  return values.map((v, e) => (mask[e] ? v : 0));
}

export function l1(values: Float64Array): number {
  return values.reduce((sum, v) => sum + Math.abs(v), 0);
}

/** Factor that gives `kept` the L1 norm of `all`; 1 where a norm vanishes. */
export function matchL1(all: Float64Array, kept: Float64Array): number {
  return l1(all) < 1e-7 || l1(kept) < 1e-7 ? 1 : l1(all) / l1(kept);
}

export interface Combination {
  weights: readonly number[];
  /** Ballots of the vote on the sign; absent: no vote, all changes add up. */
  ballots?: 'weighted' | 'values' | 'signs';
  /** Sign elected by a vote of zero. */
  zero?: 1 | -1;
  divide: 'no' | 'weights' | 'count';
  /** Divisors below it count as it. */
  floor?: number;
  lambda: number;
}

/**
 * W₀ + λ · (Σ of the weighted changes that agree with the elected sign) / divisor. Where the ballots cancel to their
 * last bits the elected sign is open.
 */
export function addUp(
  { base }: Pick<OracleTensor, 'base'>,
  kept: readonly Float64Array[],
  how: Combination,
): OracleResult {
  const open = new Set<number>();
  const values = base!.map((w, e) => {
    const values = kept.map((k) => k[e]!);
    const ballots = values.map((v, i) =>
      how.ballots === 'weighted' ? v * how.weights[i]! : how.ballots === 'signs' ? Math.sign(v) : v,
    );
    const sum = ballots.reduce((a, b) => a + b, 0);
    const size = ballots.reduce((a, b) => a + Math.abs(b), 0);
    const decided = Math.abs(sum) > 1e-6 * size || (sum === 0 && how.ballots !== 'weighted');
    if (how.ballots !== undefined && size > 0 && !decided) open.add(e);
    const elected = Math.sign(sum) || (how.zero ?? 1);
    const agrees = values.map((_, i) => how.ballots === undefined || Math.sign(ballots[i]!) === elected);
    let mixed = 0;
    let weight = 0;
    let models = 0;
    for (const [i, v] of values.entries()) {
      if (!agrees[i]) continue;
      mixed += v * how.weights[i]!;
      weight += how.weights[i]!;
      models += Number(v !== 0);
    }
    if (how.divide === 'count') mixed /= Math.max(1, models);
    if (how.divide === 'weights') mixed /= divisor(weight, how);
    return w + how.lambda * mixed;
  });
  return { values, open };
}

function divisor(weight: number, { ballots, floor }: Combination): number {
  if (floor !== undefined) return weight === 0 ? 1 : Math.max(weight, floor);
  const vanishes = ballots === undefined ? Math.abs(weight) < 1e-8 : weight === 0;
  return vanishes ? 1 : weight;
}

/** Elements in groups that a method takes as vectors: rows (last dimension) or columns (first dimension). */
export function vectorsOf(shape: readonly number[], groups: 'tensor' | 'rows' | 'columns'): number[][] {
  const n = shape.reduce((a, b) => a * b, 1);
  const all = Array.from({ length: n }, (_, e) => e);
  if (groups === 'tensor' || shape.length < 2) return [all];
  const length = groups === 'rows' ? shape.at(-1)! : shape[0]!;
  return Array.from({ length: n / length }, (_, g) =>
    Array.from({ length }, (_, i) => (groups === 'rows' ? g * length + i : i * (n / length) + g)),
  );
}

export function dot(a: ArrayLike<number>, b: ArrayLike<number>): number {
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += a[i]! * b[i]!;
  return sum;
}

export function length(a: ArrayLike<number>): number {
  return Math.sqrt(dot(a, a));
}

export function scaled(a: Float64Array, factor: number): Float64Array {
  return a.map((x) => x * factor);
}

// Matrices as lists of vectors, decomposed by two-sided Jacobi on their products; the merge rotates columns, from one side.

/** Eigenvalues and vectors of a symmetric matrix, by cyclic Jacobi rotations (Golub and Van Loan, §8.5). */
function eigen(matrix: readonly Float64Array[]): { value: number; vector: Float64Array }[] {
  const n = matrix.length;
  const a = matrix.map((row) => row.slice());
  const q = a.map((_, i) => Float64Array.from({ length: n }, (_, j) => Number(i === j)));
  for (let round = 0; round < 40; round++) {
    let off = 0;
    for (let i = 0; i < n; i++) {
      for (let j = i + 1; j < n; j++) {
        if (a[i]![j] === 0) continue;
        off = Math.max(off, Math.abs(a[i]![j]!) / Math.sqrt(Math.abs(a[i]![i]! * a[j]![j]!) || 1e-300));
        const theta = (a[j]![j]! - a[i]![i]!) / (2 * a[i]![j]!);
        const t = (theta < 0 ? -1 : 1) / (Math.abs(theta) + Math.sqrt(theta * theta + 1));
        const c = 1 / Math.sqrt(t * t + 1);
        const turn = (x: Float64Array, y: Float64Array) =>
          x.forEach((_, k) => {
            const [p, r] = [x[k]!, y[k]!];
            x[k] = c * p - c * t * r;
            y[k] = c * t * p + c * r;
          });
        turn(a[i]!, a[j]!);
        for (const row of a) {
          const [p, r] = [row[i]!, row[j]!];
          row[i] = c * p - c * t * r;
          row[j] = c * t * p + c * r;
        }
        turn(q[i]!, q[j]!);
      }
    }
    if (off < 1e-15) break;
  }
  return a.map((row, i) => ({ value: row[i]!, vector: q[i]! })).sort((x, y) => y.value - x.value);
}

/** Singular values with their vectors, largest first, of a matrix given row after row; those of zero left out. */
export function singular(tau: Float64Array, rows: number, cols: number) {
  const isWide = cols > rows;
  const row = (i: number) => tau.subarray(i * cols, (i + 1) * cols);
  const lines = isWide
    ? Array.from({ length: rows }, (_, i) => row(i).slice())
    : Array.from({ length: cols }, (_, j) => Float64Array.from({ length: rows }, (_, i) => row(i)[j]!));
  const found = eigen(lines.map((x) => Float64Array.from(lines, (y) => dot(x, y))));
  return found.flatMap(({ value, vector }) => {
    if (!(value > 1e-13 * found[0]!.value)) return [];
    const s = Math.sqrt(value);
    const other = lines[0]!.map((_, e) => lines.reduce((sum, x, i) => sum + (x[e]! * vector[i]!) / s, 0));
    return [isWide ? { s, u: vector, v: other } : { s, u: other, v: vector }];
  });
}

/** The nearest vectors that are orthonormal: X (XᵀX)^-½, for the columns of X; directions that are almost zero stay so. */
export function polarFactor(columns: readonly Float64Array[]): Float64Array[] {
  const found = eigen(columns.map((x) => Float64Array.from(columns, (y) => dot(x, y))));
  return columns.map((_, i) =>
    columns[0]!.map((_, e) =>
      found.reduce((sum, { value, vector }) => {
        if (!(value > 1e-12 * found[0]!.value)) return sum;
        const along = columns.reduce((s, x, j) => s + x[e]! * vector[j]!, 0);
        return sum + (along * vector[i]!) / Math.sqrt(value);
      }, 0),
    ),
  );
}

/** Σ uᵢvᵢᵀ row after row. */
export function times(u: readonly Float64Array[], v: readonly Float64Array[]): Float64Array {
  const cols = v[0]!.length;
  return Float64Array.from({ length: u[0]!.length * cols }, (_, e) =>
    u.reduce((sum, x, i) => sum + x[Math.floor(e / cols)]! * v[i]![e % cols]!, 0),
  );
}

export function mean(taus: readonly Float64Array[]): Float64Array {
  return taus[0]!.map((_, e) => taus.reduce((sum, tau) => sum + tau[e]!, 0) / taus.length);
}

/** W₀ + λ · `matrix` of the changes for two dimensions, W₀ + λ · mean for others. */
export function matrixOracle(
  matrix: (
    taus: readonly Float64Array[],
    shape: { rows: number; cols: number },
    parameters: ResolvedParameters,
  ) => Float64Array,
): Oracle {
  return (tensor) => {
    const taus = changes(tensor);
    const [rows = 1, cols = 1] = tensor.shape;
    const tau = tensor.shape.length === 2 ? matrix(taus, { rows, cols }, tensor.parameters) : mean(taus);
    return tensor.base!.map((w, e) => w + Number(tensor.parameters.lambda) * tau[e]!);
  };
}

/** With `space: knots` a matrix is merged by its coordinates along the left singular vectors of all its changes side by side. */
export function inSpace(
  tensor: OracleTensor,
  all: readonly OracleTensor[],
  merge: Oracle,
): Float64Array | OracleResult {
  const { shape, base, models, parameters } = tensor;
  if (parameters.space !== 'knots' || shape.length !== 2) return merge(tensor, all);
  const [rows, cols] = shape as [number, number];
  const taus = changes(tensor);
  const wide = new Float64Array(rows * cols * taus.length);
  for (const [i, tau] of taus.entries())
    for (let r = 0; r < rows; r++)
      wide.set(tau.subarray(r * cols, (r + 1) * cols), (r * taus.length + i) * cols);
  const directions = singular(wide, rows, cols * taus.length).map(({ u }) => u);
  const along = (tau: Float64Array) =>
    Float64Array.from({ length: directions.length * cols }, (_, e) => {
      const u = directions[Math.floor(e / cols)]!;
      return u.reduce((sum, x, r) => sum + x * tau[r * cols + (e % cols)]!, 0);
    });
  const coordinates = {
    ...tensor,
    shape: [directions.length, cols],
    base: new Float64Array(directions.length * cols),
    models: models.map((model, i) => ({ ...model, weights: along(taus[i]!) })),
  };
  const merged = merge(coordinates, all);
  const { values, open } =
    merged instanceof Float64Array ? { values: merged, open: new Set<number>() } : merged;
  const rowsOf = directions.map((_, k) => values.subarray(k * cols, (k + 1) * cols));
  const change = times(directions, rowsOf);
  const columns = new Set([...open].map((e) => e % cols));
  return {
    values: base!.map((w, e) => w + change[e]!),
    open: new Set([...base!.keys()].filter((e) => columns.has(e % cols))),
  };
}
