/** Rotary and ALiBi positions: the numbers that do not depend on the input, in f64. */
import type { Rope } from './architecture';

/**
 * Angles per position of the pairs (i, i + dims/2), i < dims/2: θ^(−2i/dims), then scaled (transformers
 * modeling_rope_utils.py). `linear` divides by the factor; `llama3` divides long wavelengths, keeps short ones and
 * blends between; `yarn` (Peng et al. 2023) does so by how often a pair rotates within the original positions; `longrope`
 * divides each pair by its own factor, of the list for short or for long sequences.
 * @param long whether the sequence is longer than the original positions
 */
export function inverseFrequencies({ theta, dims, scaling }: Rope, long = false): Float64Array {
  const ramp = scaling.type === 'yarn' ? yarnRamp(theta, dims, scaling) : undefined;
  return Float64Array.from({ length: dims / 2 }, (_, i) => {
    const inverse = theta ** ((-2 * i) / dims);
    if (scaling.type === 'default') return inverse;
    if (scaling.type === 'temperature') return 0;
    if (scaling.type === 'proportional') return i < scaling.turning ? inverse / scaling.factor : 0;
    if (scaling.type === 'linear') return inverse / scaling.factor;
    if (scaling.type === 'longrope') return inverse / (long ? scaling.long : scaling.short)[i]!;
    if (scaling.type === 'yarn') return (inverse / scaling.factor) * ramp![i]! + inverse * (1 - ramp![i]!);
    const { factor, low, high, original } = scaling;
    const wavelength = (2 * Math.PI) / inverse;
    if (wavelength < original / high) return inverse;
    if (wavelength > original / low) return inverse / factor;
    const smooth = (original / wavelength - low) / (high - low);
    return (1 - smooth) * (inverse / factor) + smooth * inverse;
  });
}

/** Factor of cos and sin at a position. */
function magnitude(scaling: Rope['scaling'], position: number, long: boolean): number {
  if (scaling.type === 'yarn') return scaling.attention;
  if (scaling.type === 'longrope') return long ? scaling.attention.long : scaling.attention.short;
  if (scaling.type !== 'temperature') return 1;
  return 1 + scaling.size * Math.log1p(Math.floor((position + 1) / scaling.floor));
}

/** Share of each pair that is divided: 0 for those that rotate `fast` times or more, 1 for `slow` or less. */
function yarnRamp(
  theta: number,
  dims: number,
  { original, fast, slow, truncate }: Extract<Rope['scaling'], { type: 'yarn' }>,
): Float64Array {
  const pairOf = (turns: number) =>
    (dims * Math.log(original / (turns * 2 * Math.PI))) / (2 * Math.log(theta));
  const low = Math.max(truncate ? Math.floor(pairOf(fast)) : pairOf(fast), 0);
  const end = Math.min(truncate ? Math.ceil(pairOf(slow)) : pairOf(slow), dims - 1);
  const high = end === low ? end + 0.001 : end;
  return Float64Array.from({ length: dims / 2 }, (_, i) =>
    Math.min(1, Math.max(0, (i - low) / (high - low))),
  );
}

/** The most positions a sequence can have before `longrope` goes over to its long factors; undefined for others. */
export function longAfter({ scaling }: Rope): number | undefined {
  return scaling.type === 'longrope' ? scaling.original : undefined;
}

/**
 * cos and sin of `count` positions from `first` on, each [count, dims/2], computed in f64. Tables come from the host
 * because the trigonometry of graphics devices is too coarse for large angles. Yarn and longrope also scale them, and
 * with them the scores.
 */
export function ropeTables(
  rope: Rope,
  first: number,
  count: number,
  long = false,
): { cos: Float64Array; sin: Float64Array } {
  const inverse = inverseFrequencies(rope, long);
  const { scaling } = rope;
  const cos = new Float64Array(count * inverse.length);
  const sin = new Float64Array(count * inverse.length);
  for (let p = 0; p < count; p++) {
    const size = magnitude(scaling, first + p, long);
    for (let i = 0; i < inverse.length; i++) {
      const angle = (first + p) * inverse[i]!;
      cos[p * inverse.length + i] = size * Math.cos(angle);
      sin[p * inverse.length + i] = size * Math.sin(angle);
    }
  }
  return { cos, sin };
}

/**
 * Slopes of ALiBi (Press et al. 2021, as BLOOM builds them: transformers modeling_bloom.py, build_alibi_tensor): a
 * geometric sequence for the largest power of two of heads, the rest from the odd powers of the next one's base.
 */
export function alibiSlopes(heads: number): number[] {
  const power = 2 ** Math.floor(Math.log2(heads));
  const base = 2 ** -(2 ** -(Math.log2(power) - 3));
  const extra = 2 ** -(2 ** -(Math.log2(2 * power) - 3));
  return Array.from({ length: heads }, (_, h) =>
    h < power ? base ** (h + 1) : extra ** (2 * (h - power) + 1),
  );
}
