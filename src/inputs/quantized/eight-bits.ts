/** Numbers of eight bits (OCP 8-bit Floating Point, E4M3 and E5M2). */
import type { TensorRef } from '../tensor-view';

/** Names that the scale of a weight has. */
export function scaleNames(name: string): string[] {
  return [`${name}_scale_inv`, `${name}_scale`];
}

/** What each code of eight bits stands for. */
export function eightBitValues(dtype: TensorRef['dtype']): Float32Array {
  return Float32Array.from({ length: 256 }, (_, bits) => (dtype === 'F8_E4M3' ? e4m3(bits) : e5m2(bits)));
}

/** Four bits of exponent (bias 7), three of mantissa; no infinity, all ones are NaN. */
function e4m3(bits: number): number {
  const sign = bits & 0x80 ? -1 : 1;
  const [exponent, mantissa] = [(bits >> 3) & 15, bits & 7];
  if ((bits & 0x7f) === 0x7f) return Number.NaN;
  return sign * (exponent === 0 ? mantissa * 2 ** -9 : (8 + mantissa) * 2 ** (exponent - 10));
}

/** The upper byte of binary16. */
function e5m2(bits: number): number {
  const sign = bits & 0x80 ? -1 : 1;
  const [exponent, mantissa] = [(bits >> 2) & 31, bits & 3];
  if (exponent === 31) return mantissa === 0 ? sign * Number.POSITIVE_INFINITY : Number.NaN;
  return sign * (exponent === 0 ? mantissa * 2 ** -16 : (4 + mantissa) * 2 ** (exponent - 17));
}
