/**
 * binary16 and bfloat16 by integer code only, the counterpart of `shaders/lib/half.wgsl`: exact in both directions,
 * subnormals, signed zeros, infinities and NaN included; rounding is to nearest, ties to even. Layouts: IEEE 754-2008
 * binary16 (5-bit exponent, bias 15) and bfloat16 (the upper half of binary32). Bytes are little-endian, as in
 * safetensors and on every machine that runs a browser with WebGPU.
 */
import { fault } from '../errors';
import { type WeightDtype, weightBytes } from './dtype';
import { counted } from './quantity';

/** bf16 bits (low 16) → f32 bits. Exact. */
export function bf16ToF32(half: number): number {
  return (half << 16) >>> 0;
}

/** f16 bits (low 16) → f32 bits. Exact; a NaN keeps its payload. */
export function f16ToF32(half: number): number {
  const sign = (half & 0x8000) << 16;
  const exponent = (half >> 10) & 0x1f;
  const mantissa = half & 0x3ff;
  if (exponent === 0x1f) return (sign | 0x7f800000 | (mantissa << 13)) >>> 0;
  if (exponent !== 0) return (sign | ((exponent + 112) << 23) | (mantissa << 13)) >>> 0;
  if (mantissa === 0) return sign >>> 0;
  const shift = Math.clz32(mantissa) - 21; // brings the leading one to bit 10
  return (sign | ((113 - shift) << 23) | (((mantissa << shift) & 0x3ff) << 13)) >>> 0;
}

/** f32 bits → bf16 bits, to nearest even. NaN stays NaN and becomes quiet; overflow becomes infinity. */
export function f32ToBf16(bits: number): number {
  if ((bits & 0x7fffffff) > 0x7f800000) return (bits >>> 16) | 0x40;
  return (bits + 0x7fff + ((bits >>> 16) & 1)) >>> 16;
}

/** f32 bits → f16 bits, to nearest even. NaN stays NaN and becomes quiet; 65520 and above becomes infinity. */
export function f32ToF16(bits: number): number {
  const sign = (bits >>> 16) & 0x8000;
  const a = bits & 0x7fffffff;
  if (a > 0x7f800000) return sign | 0x7e00 | ((a >>> 13) & 0x1ff);
  if (a >= 0x477ff000) return sign | 0x7c00;
  if (a >= 0x38800000) {
    const r = a - 0x38000000;
    return sign | ((r + 0xfff + ((r >>> 13) & 1)) >>> 13);
  }
  const exponent = a >>> 23;
  if (exponent < 102) return sign; // below 2^-25: zero
  const mantissa = (a & 0x7fffff) | 0x800000;
  const shift = 126 - exponent; // 14 … 24
  const middle = 1 << (shift - 1);
  const kept = mantissa >>> shift;
  const rest = mantissa & ((1 << shift) - 1);
  const up = rest > middle || (rest === middle && (kept & 1) === 1);
  return sign | (kept + (up ? 1 : 0));
}

/**
 * Decodes stored elements into f32. `bytes` may begin at any address (old writers do not align tensors).
 * @param out one f32 per element; bits of NaN are kept
 * @throws AmalgamError `Internal` when the lengths do not match
 */
export function decodeToF32(bytes: Uint8Array, dtype: WeightDtype, out: Float32Array): void {
  checkLength(bytes, dtype, out);
  const words = new Uint32Array(out.buffer, out.byteOffset, out.length);
  if (dtype === 'F32') {
    new Uint8Array(out.buffer, out.byteOffset, out.byteLength).set(bytes);
    return;
  }
  const aligned = bytes.byteOffset % 2 === 0 ? bytes : bytes.slice();
  const halves = new Uint16Array(aligned.buffer, aligned.byteOffset, out.length);
  if (dtype === 'BF16') {
    for (let i = 0; i < halves.length; i++) words[i] = halves[i]! << 16;
  } else {
    const table = f16Table();
    for (let i = 0; i < halves.length; i++) words[i] = table[halves[i]!]!;
  }
}

/**
 * Encodes f32 values, each rounded once to nearest even. `out` may begin at any address.
 * @throws AmalgamError `Internal` when the lengths do not match
 */
export function encodeFromF32(values: Float32Array, dtype: WeightDtype, out: Uint8Array): void {
  checkLength(out, dtype, values);
  if (dtype === 'F32') {
    out.set(new Uint8Array(values.buffer, values.byteOffset, values.byteLength));
    return;
  }
  const words = new Uint32Array(values.buffer, values.byteOffset, values.length);
  const inPlace = out.byteOffset % 2 === 0;
  const halves = inPlace
    ? new Uint16Array(out.buffer, out.byteOffset, words.length)
    : new Uint16Array(words.length);
  if (dtype === 'BF16') for (let i = 0; i < words.length; i++) halves[i] = f32ToBf16(words[i]!);
  else for (let i = 0; i < words.length; i++) halves[i] = f32ToF16(words[i]!);
  if (!inPlace) out.set(new Uint8Array(halves.buffer));
}

function checkLength(bytes: Uint8Array, dtype: WeightDtype, values: Float32Array): void {
  if (bytes.byteLength === values.length * weightBytes(dtype)) return;
  throw fault(`${values.length} ${dtype} values do not fill ${counted(bytes.byteLength, 'byte')}.`);
}

let widened: Uint32Array<ArrayBuffer> | undefined;

/** f32 bits of all 65 536 halves: a load is faster than the branches of {@link f16ToF32}. */
export function f16Table(): Uint32Array<ArrayBuffer> {
  widened ??= Uint32Array.from({ length: 0x10000 }, (_, half) => f16ToF32(half));
  return widened;
}
