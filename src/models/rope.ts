/** Rotary and ALiBi positions: the numbers that do not depend on the input, in f64. */
import type { Rope } from './architecture';

/**
 * Angles per position of the pairs (i, i + dims/2), i < dims/2: θ^(−2i/dims), then scaled (transformers
 * modeling_rope_utils.py). `linear` divides by the factor; `llama3` divides long wavelengths, keeps short ones and
 * blends between.
 */
export function inverseFrequencies({ theta, dims, scaling }: Rope): Float64Array {
  return Float64Array.from({ length: dims / 2 }, (_, i) => {
    const inverse = theta ** ((-2 * i) / dims);
    if (scaling.type === 'default') return inverse;
    if (scaling.type === 'linear') return inverse / scaling.factor;
    const { factor, low, high, original } = scaling;
    const wavelength = (2 * Math.PI) / inverse;
    if (wavelength < original / high) return inverse;
    if (wavelength > original / low) return inverse / factor;
    const smooth = (original / wavelength - low) / (high - low);
    return (1 - smooth) * (inverse / factor) + smooth * inverse;
  });
}

/**
 * cos and sin of `count` positions from `first` on, each [count, dims/2], computed in f64. Tables come from the host
 * because the trigonometry of graphics devices is too coarse for large angles.
 */
export function ropeTables(
  rope: Rope,
  first: number,
  count: number,
): { cos: Float64Array; sin: Float64Array } {
  const inverse = inverseFrequencies(rope);
  const cos = new Float64Array(count * inverse.length);
  const sin = new Float64Array(count * inverse.length);
  for (let p = 0; p < count; p++) {
    for (let i = 0; i < inverse.length; i++) {
      const angle = (first + p) * inverse[i]!;
      cos[p * inverse.length + i] = Math.cos(angle);
      sin[p * inverse.length + i] = Math.sin(angle);
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
