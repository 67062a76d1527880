/** How PEFT prunes and combines task tensors (its `utils/merge_utils.py`): flat arrays of one length, in f64. */

/** The ⌊density · n⌋ entries largest in size; among equals those that come first. */
export function pruneByMagnitude(values: Float64Array, density: number): Float64Array {
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
export function pruneAtRandom(
  values: Float64Array,
  density: number,
  chance: (i: number) => number,
): Float64Array {
  if (density >= 1) return values;
  return values.map((value, i) => (chance(i) < density ? value / density : 0));
}

/** Σ wᵢ vᵢ */
export function weightedSum(tensors: readonly Float64Array[], weights: readonly number[]): Float64Array {
  const out = new Float64Array(tensors[0]!.length);
  for (const [k, tensor] of tensors.entries()) {
    for (let i = 0; i < out.length; i++) out[i]! += weights[k]! * tensor[i]!;
  }
  return out;
}

export type MajoritySign = 'total' | 'frequency';

/**
 * The mean of w·v over the tensors that have the majority's sign there: the sign of Σv (`total`) or of Σ sign v; zero counts
 * as positive.
 */
export function disjointMean(
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
