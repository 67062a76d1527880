/**
 * Several LoRAs of one module made one: the combinations of PEFT's `add_weighted_adapter` (0.21, tuners/lora/model.py).
 * `linear`, `ties`, `dare_*` and `magnitude_prune` work on A and B each for itself; with `_svd` behind they work on the
 * products, of which the leading singular values are kept; `cat` is exact, with the ranks added up. `gram` is ours (./gram.ts).
 */
import { chances, maskKey, normals } from '../backend/philox';
import type { Combination } from '../formats/adapter-combination';
import { addTo, type Columns, column, dot, product, transposed, zeroColumns } from '../linalg/columns';
import { POWER_ITERATIONS, rangeBasis, sketchWidth, thinQr } from '../linalg/householder';
import { productSvd, thinProductSvd } from '../linalg/product-svd';
import { type Svd, smallSvd } from '../linalg/small-svd';
import { dividePositive } from '../linalg/solve-positive';

/** One LoRA of a module: ΔW = scale · B · A. */
export interface LoraFactors {
  /** [rank, inputs] */
  a: Float32Array;
  /** [outputs, rank] */
  b: Float32Array;
  rank: number;
  scale: number;
  weight: number;
  /** How much it counts in a Gram merge; default 1. */
  count?: number;
  density: number;
  /** Names it in the random numbers of DARE. */
  id: string;
}

export interface CombineSettings {
  combination: Combination;
  /** Rank wanted of a decomposition; at most that of the matrix. */
  rank: number;
  majority: MajoritySign;
  seed: number;
  /** The module, for random numbers. */
  name: string;
}

/** B · A of the result, unscaled. */
export interface Combined {
  a: Float32Array;
  b: Float32Array;
  rank: number;
}

/** Rank of the result for a module of [outputs, inputs]. */
export function combinedRank(
  combination: Combination,
  ranks: readonly number[],
  wanted: number,
  outputs: number,
  inputs: number,
): number {
  const sum = ranks.reduce((a, b) => a + b, 0);
  if (combination === 'cat') return sum;
  if (combination === 'gram') return Math.min(sum, inputs);
  if (!isDecomposed(combination)) return ranks[0]!;
  return Math.min(wanted, outputs, inputs);
}

/** Whether the result is cut from singular values, so that its rank is free and the inputs' may differ. */
export function isDecomposed(combination: Combination): boolean {
  return combination.endsWith('svd');
}

/** Whether it works on the factors entry by entry, so that those of one module need one rank. */
export function needsOneRank(combination: Combination): boolean {
  return combination !== 'cat' && !isGram(combination) && !isDecomposed(combination);
}

export function isGram(combination: Combination): boolean {
  return combination === 'gram' || combination === 'gram_svd';
}

/** Combines the LoRAs of one module, of one rank where the combination is of factors. */
export async function combine(
  loras: readonly LoraFactors[],
  settings: CombineSettings | { combination: 'cat' },
): Promise<Combined> {
  const { combination } = settings;
  if (combination === 'cat') return stacked(loras);
  if (isGram(combination)) return gramMerged(loras, settings);
  if (combination === 'svd') return cut(await factoredSvd(loras, settings.rank), loras, settings.rank);
  if (isDecomposed(combination)) return cut(await denseSvd(loras, settings), loras, settings.rank);
  // a weight is shared out over A and B; its sign goes to A
  const roots = loras.map(({ weight, scale }) => Math.sqrt(Math.abs(weight * scale)));
  const signed = roots.map((root, i) => (loras[i]!.weight * loras[i]!.scale < 0 ? -root : root));
  const side = (part: 'a' | 'b', weights: readonly number[]) => {
    const tensors = loras.map((lora) => Float64Array.from(lora[part]));
    return Float32Array.from(
      merged(tensors, weights, loras, { ...settings, name: `${settings.name}.${part}` }),
    );
  };
  return { a: side('a', signed), b: side('b', roots), rank: loras[0]!.rank };
}

/** Rows of A one below the other, columns of B side by side: Σ wᵢ sᵢ BᵢAᵢ exactly. */
function stacked(loras: readonly LoraFactors[]): Combined {
  return {
    a: stackedDown(loras.map((lora) => ({ ...lora, values: lora.a }))),
    b: stackedUp(loras.map((lora) => ({ ...lora, values: lora.b }))),
    rank: rankOf(loras),
  };
}

/** One factor of a LoRA. */
interface OneFactor extends Pick<LoraFactors, 'rank' | 'scale' | 'weight'> {
  values: Float32Array;
}

const rankOf = (loras: readonly { rank: number }[]) => loras.reduce((sum, { rank }) => sum + rank, 0);

/** A of LoRAs one below the other, which take weights and scales. */
export function stackedDown(loras: readonly OneFactor[]): Float32Array {
  const out = new Float32Array(loras.reduce((sum, { values }) => sum + values.length, 0));
  let at = 0;
  for (const { values, weight, scale } of loras) {
    for (let i = 0; i < values.length; i++) out[at + i] = values[i]! * weight * scale;
    at += values.length;
  }
  return out;
}

/** B of LoRAs side by side. */
export function stackedUp(loras: readonly OneFactor[]): Float32Array {
  const rank = rankOf(loras);
  const outputs = loras[0]!.values.length / loras[0]!.rank;
  const out = new Float32Array(outputs * rank);
  let at = 0;
  for (const { rank: own, values } of loras) {
    for (let o = 0; o < outputs; o++) out.set(values.subarray(o * own, (o + 1) * own), o * rank + at);
    at += own;
  }
  return out;
}

/** B = N and A = Qᵀ, or the leading singular values of the product. */
function gramMerged(loras: readonly LoraFactors[], { combination, rank }: CombineSettings): Combined {
  const { n, q } = gramFactors(loras.map((lora) => ({ ...lora, factor: lora.weight * lora.scale })));
  if (combination === 'gram') {
    return { a: Float32Array.from(q.data), b: Float32Array.from(transposed(n).data), rank: q.cols };
  }
  const { s, u, v } = smallSvd(n);
  return cut({ s, u, v: product(q, v) }, loras, rank);
}

/** The rule of a combination over task tensors of one length. */
function merged(
  tensors: readonly Float64Array[],
  weights: readonly number[],
  loras: readonly LoraFactors[],
  { combination, majority, seed, name }: CombineSettings,
): Float64Array {
  const rule = combination.replace('_svd', '');
  const random = rule.startsWith('dare');
  const pruned = tensors.map((tensor, k) => {
    const { density, id } = loras[k]!;
    if (rule === 'linear') return tensor;
    return random
      ? pruneAtRandom(tensor, density, chances(maskKey(seed, id, name)))
      : pruneByMagnitude(tensor, density);
  });
  return rule.endsWith('ties') ? disjointMean(pruned, weights, majority) : weightedSum(pruned, weights);
}

/**
 * Σ wᵢ sᵢ BᵢAᵢ without the product: QR of the stacked B and of the stacked Aᵀ, and the singular values of the small matrix
 * between; by Gram matrices where only the leading ones are wanted. Where the ranks add up to more than a side, the product is no
 * larger than the factors.
 */
export async function factoredSvd(loras: readonly LoraFactors[], wanted?: number): Promise<Svd> {
  const { a, b, rank } = stacked(loras);
  const left = transposed({ rows: rank, cols: b.length / rank, data: Float64Array.from(b) });
  const right = { rows: a.length / rank, cols: rank, data: Float64Array.from(a) };
  const isThin = wanted !== undefined && rank <= Math.min(left.rows, right.rows);
  return (isThin && productSvd(left, right, wanted)) || thinProductSvd(left, right);
}

/** Matrices whose smaller side is at most this are decomposed exactly. */
const EXACT_SIDE = 256;

/** The rule applied to the products sᵢBᵢAᵢ themselves, in memory: pruning knows no factors. */
async function denseSvd(loras: readonly LoraFactors[], settings: CombineSettings): Promise<Svd> {
  const deltas = loras.map((lora) => Float64Array.from(productOf(lora)));
  const outputs = loras[0]!.b.length / loras[0]!.rank;
  const inputs = deltas[0]!.length / outputs;
  const weights = loras.map(({ weight }) => weight);
  // row after row of ΔW is column after column of its transpose
  const transpose: Columns = { rows: inputs, cols: outputs, data: merged(deltas, weights, loras, settings) };
  if (Math.min(inputs, outputs) <= EXACT_SIDE) {
    const { s, u, v } = smallSvd(transpose);
    return { s, u: v, v: u };
  }
  const width = sketchWidth(transpose, settings.rank);
  const start = {
    rows: outputs,
    cols: width,
    data: normals(outputs * width, maskKey(settings.seed, 'svd', settings.name)),
  };
  const map = {
    times: (x: Columns) => product(transpose, x),
    transposedTimes: (y: Columns) => transposedTimes(transpose, y),
  };
  const basis = await rangeBasis(map, start, POWER_ITERATIONS);
  const { s, u, v } = smallSvd(transposedTimes(transpose, basis));
  return { s, u, v: product(basis, v) };
}

/** aᵀ · y, without transposing a. */
function transposedTimes(a: Columns, y: Columns): Columns {
  const out = zeroColumns(a.cols, y.cols);
  for (let j = 0; j < y.cols; j++) {
    const from = column(y, j);
    for (let c = 0; c < a.cols; c++) {
      let sum = 0;
      for (let i = 0; i < a.rows; i++) sum += a.data[c * a.rows + i]! * from[i]!;
      out.data[j * a.cols + c] = sum;
    }
  }
  return out;
}

/** s · B · A, row after row. */
function productOf({ a, b, rank, scale }: LoraFactors): Float32Array {
  const outputs = b.length / rank;
  const inputs = a.length / rank;
  const out = new Float32Array(outputs * inputs);
  const row = new Float64Array(inputs);
  for (let o = 0; o < outputs; o++) {
    row.fill(0);
    for (let k = 0; k < rank; k++) {
      const left = scale * b[o * rank + k]!;
      for (let c = 0; c < inputs; c++) row[c]! += left * a[k * inputs + c]!;
    }
    out.set(row, o * inputs);
  }
  return out;
}

/** B = U·S and A = Vᵀ of the leading values; zeros where there are fewer. */
function cut({ s, u, v }: Svd, loras: readonly LoraFactors[], wanted: number): Combined {
  const outputs = loras[0]!.b.length / loras[0]!.rank;
  const inputs = loras[0]!.a.length / loras[0]!.rank;
  const rank = Math.min(wanted, outputs, inputs);
  const a = new Float32Array(rank * inputs);
  const b = new Float32Array(outputs * rank);
  for (let k = 0; k < Math.min(rank, s.length); k++) {
    a.set(column(v, k), k * inputs);
    for (let o = 0; o < outputs; o++) b[o * rank + k] = column(u, k)[o]! * s[k]!;
  }
  return { a, b, rank };
}

// The Gram merge of LoRAs of one module, their changes in place of inputs: τ = ΣτᵢGᵢ · (ΣGᵢ)⁻¹ with τᵢ = wᵢsᵢBᵢAᵢ and
// Gᵢ = cᵢ·(τᵢᵀτᵢ/‖τᵢ‖² + I/d), d inputs and the count cᵢ (docs/importance-mathematics.md; Cheng et al. 2025). All of it happens in the space that
// the rows of the Aᵢ span: with Q an orthonormal basis of it and Pᵢ = τᵢQ, the result is N·Qᵀ with
// N = ΣPᵢHᵢ · (ΣHᵢ)⁻¹, Hᵢ = cᵢ·(PᵢᵀPᵢ/‖Pᵢ‖² + I/d). Nothing is lost by staying there, since what is outside has no change.

/** One change: scale · B · A. */
interface ScaledFactors {
  /** [rank, inputs], row after row */
  a: Float32Array;
  /** [outputs, rank], row after row */
  b: Float32Array;
  rank: number;
  /** α/r times the weight. */
  factor: number;
  count?: number;
}

/** τ = N · Qᵀ. */
interface GramFactors {
  /** [outputs, rank] */
  n: Columns;
  /** [inputs, rank], orthonormal */
  q: Columns;
}

/** @param changes of one module; those that are zero do not count */
function gramFactors(changes: readonly ScaledFactors[]): GramFactors {
  const inputs = changes[0]!.a.length / changes[0]!.rank;
  const outputs = changes[0]!.b.length / changes[0]!.rank;
  const q = basisOf(changes, inputs);
  const right = zeroColumns(outputs, q.cols);
  const total = zeroColumns(q.cols, q.cols);
  for (const { a, b, rank, factor, count = 1 } of changes) {
    // A of rows is Aᵀ of columns
    const rows = { rows: inputs, cols: rank, data: Float64Array.from(a) };
    const columns = transposed({ rows: rank, cols: outputs, data: Float64Array.from(b, (v) => v * factor) });
    const p = product(columns, product(transposed(rows), q));
    const square = dot(p.data, p.data);
    if (square === 0 || count === 0) continue;
    const h = zeroColumns(q.cols, q.cols);
    for (let j = 0; j < q.cols; j++) {
      for (let i = 0; i <= j; i++) {
        const value = count * (dot(column(p, i), column(p, j)) / square + (i === j ? 1 / inputs : 0));
        h.data[j * q.cols + i] = value;
        h.data[i * q.cols + j] = value;
      }
    }
    addTo(total.data, 1, h.data);
    addTo(right.data, 1, product(p, h).data);
  }
  // nothing changes anything
  if (total.data.every((v) => v === 0)) return { n: right, q };
  return { n: dividePositive(right, total), q };
}

/** An orthonormal basis of the row space of all A, of as many vectors as there are rows, or inputs. */
function basisOf(changes: readonly ScaledFactors[], inputs: number): Columns {
  const rank = changes.reduce((sum, change) => sum + change.rank, 0);
  if (rank >= inputs) {
    const whole = zeroColumns(inputs, inputs);
    for (let i = 0; i < inputs; i++) whole.data[i * inputs + i] = 1;
    return whole;
  }
  const stacked = zeroColumns(inputs, rank);
  let at = 0;
  for (const { a } of changes) {
    stacked.data.set(a, at);
    at += a.length;
  }
  return thinQr(stacked).q;
}

/** How PEFT prunes and combines task tensors (its `utils/merge_utils.py`): flat arrays of one length, in f64. */

/** The ⌊density · n⌋ entries largest in size; among equals those that come first. */
function pruneByMagnitude(values: Float64Array, density: number): Float64Array {
  if (density >= 1) return values;
  const kept = Math.floor(density * values.length);
  const out = new Float64Array(values.length);
  if (kept === 0) return out;
  const sizes = values.map(Math.abs).sort();
  const cut = sizes[sizes.length - kept]!;
  let above = 0;
  for (const value of values) if (Math.abs(value) > cut) above++;
  let level = kept - above;
  for (const [i, value] of values.entries()) {
    const size = Math.abs(value);
    if (size > cut || (size === cut && level-- > 0)) out[i] = value;
  }
  return out;
}

/** Each entry with the probability of the density, over it. @param chance in [0, 1) of the i-th entry */
function pruneAtRandom(values: Float64Array, density: number, chance: (i: number) => number): Float64Array {
  if (density >= 1) return values;
  return values.map((value, i) => (chance(i) < density ? value / density : 0));
}

/** Σ wᵢ vᵢ */
function weightedSum(tensors: readonly Float64Array[], weights: readonly number[]): Float64Array {
  const out = new Float64Array(tensors[0]!.length);
  for (const [k, tensor] of tensors.entries()) {
    for (let i = 0; i < out.length; i++) out[i]! += weights[k]! * tensor[i]!;
  }
  return out;
}

type MajoritySign = 'total' | 'frequency';

/**
 * The mean of w·v over the tensors that have the majority's sign there: the sign of Σv (`total`) or of Σ sign v; zero counts
 * as positive.
 */
function disjointMean(
  tensors: readonly Float64Array[],
  weights: readonly number[],
  majority: MajoritySign,
): Float64Array {
  const out = new Float64Array(tensors[0]!.length);
  for (let i = 0; i < out.length; i++) {
    let vote = 0;
    for (const tensor of tensors) vote += majority === 'total' ? tensor[i]! : Math.sign(tensor[i]!);
    const sign = vote >= 0 ? 1 : -1;
    let sum = 0;
    let count = 0;
    for (const [k, tensor] of tensors.entries()) {
      if (Math.sign(tensor[i]!) !== sign) continue;
      sum += weights[k]! * tensor[i]!;
      count++;
    }
    out[i] = sum / Math.max(count, 1);
  }
  return out;
}
