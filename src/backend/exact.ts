/**
 * The arithmetic of every kernel: f32, rounded to nearest even after each operation, without subnormals. WGSL leaves
 * it to the device whether a subnormal stays or is taken as zero, and devices differ (most flush, CPUs do not), so the
 * kernels decide: a magnitude up to 2^-126 counts as zero of its sign. The bound itself is included because devices
 * that flush do not agree on results that round up to it. In WGSL it is `exact` in shaders/lib/stamp.wgsl.
 */
const float = new Float32Array(1);
const bits = new Int32Array(float.buffer);

/** One rounding step: `x` (the exact result of one operation, in f64) as f32 without subnormals. */
export function exact(x: number): number {
  float[0] = x;
  // one comparison that is false for zero and for every larger magnitude: predictable even in sparse data
  if (((bits[0]! << 1) - 1) >>> 0 < 0x1000000) bits[0]! &= 0x80000000;
  return float[0]!;
}

/** Values that the host gives to kernels, each as `exact` makes it: coefficients, factors, scores. */
export function exactFloats(values: ArrayLike<number>): Float32Array<ArrayBuffer> {
  const floats = new Float32Array(values.length);
  floats.set(values);
  return flushFloats(floats);
}

/** The same of floats, in place. */
export function flushFloats<T extends Float32Array>(floats: T): T {
  const words = new Int32Array(floats.buffer, floats.byteOffset, floats.length);
  for (let i = 0; i < words.length; i++) {
    const word = words[i]!;
    if (((word << 1) - 1) >>> 0 < 0x1000000) words[i] = word & 0x80000000;
  }
  return floats;
}
