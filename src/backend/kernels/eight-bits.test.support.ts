/** Weights of eight bits as the formula of Q8_0 says. */
import { f16ToF32, f32ToF16 } from '../../formats/half';

const random = (seed: number) => () => {
  seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
  return seed / 2 ** 31 - 1;
};

/** Values of very different sizes, and a block of zeros. */
export function weightsOf(count: number, seed: number): Float32Array<ArrayBuffer> {
  const next = random(seed);
  return Float32Array.from({ length: count }, (_, i) => (i < 32 ? 0 : next() * 2 ** ((i >> 5) % 9) * 1e-3));
}

const bits = new Uint32Array(1);
const single = new Float32Array(bits.buffer);
function half(value: number): number {
  single[0] = value;
  bits[0] = f16ToF32(f32ToF16(bits[0]!));
  return single[0]!;
}

/** Q8_0: d = max|x| / 127, each x rounded to a multiple of d, halves away from zero; d is stored as f16. */
export function throughQ8(values: Float32Array): Float64Array {
  const out = new Float64Array(values.length);
  for (let begin = 0; begin < values.length; begin += 32) {
    const block = values.subarray(begin, begin + 32);
    const d = Math.fround(Math.max(...block.map(Math.abs)) / 127);
    const inverse = d === 0 ? 0 : Math.fround(1 / d);
    for (const [i, x] of block.entries()) {
      const scaled = Math.fround(x * inverse);
      out[begin + i] = Math.sign(scaled) * Math.floor(Math.abs(scaled) + 0.5) * half(d);
    }
  }
  return out;
}
