import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { bf16ToF32, decodeToF32, encodeFromF32, f16ToF32, f32ToBf16, f32ToF16 } from './half';

const word = new Uint32Array(1);
const float = new Float32Array(word.buffer);
function f32Of(bits: number): number {
  word[0] = bits;
  return float[0]!;
}
function bitsOf(value: number): number {
  float[0] = value;
  return word[0]!;
}

/** Formats by their parameters, so that the oracle below shares no code with the module. */
const FORMATS = {
  F16: { mantissa: 10, lowest: -14, highest: 15, narrow: f32ToF16, widen: f16ToF32 },
  BF16: { mantissa: 7, lowest: -126, highest: 127, narrow: f32ToBf16, widen: bf16ToF32 },
} as const;
type Format = (typeof FORMATS)[keyof typeof FORMATS];

/** Value of half bits from the definition of IEEE formats, in f64. */
function meaning(half: number, f: Format): number {
  const sign = half & 0x8000 ? -1 : 1;
  const mantissa = half & (2 ** f.mantissa - 1);
  const exponent = (half & 0x7fff) >> f.mantissa;
  if (exponent === 2 ** (15 - f.mantissa) - 1) return mantissa === 0 ? sign * Infinity : Number.NaN;
  const scale = 2 ** (Math.max(exponent, 1) + f.lowest - 1 - f.mantissa);
  return sign * (mantissa + (exponent === 0 ? 0 : 2 ** f.mantissa)) * scale;
}

/** Nearest representable value, ties to even, by f64 arithmetic that is exact for every f32. */
function nearest(value: number, f: Format): number {
  if (!Number.isFinite(value) || value === 0) return value;
  const size = Math.abs(value);
  let exponent = Math.floor(Math.log2(size));
  if (2 ** exponent > size) exponent--;
  if (2 ** (exponent + 1) <= size) exponent++;
  const quantum = 2 ** (Math.max(exponent, f.lowest) - f.mantissa);
  const steps = size / quantum;
  const below = Math.floor(steps);
  const rest = steps - below;
  const rounded = (rest > 0.5 || (rest === 0.5 && below % 2 === 1) ? below + 1 : below) * quantum;
  return Math.sign(value) * (rounded >= 2 ** (f.highest + 1) ? Infinity : rounded);
}

function expectNarrow(bits: number, f: Format): void {
  const value = f32Of(bits);
  const half = f.narrow(bits);
  const got = meaning(half, f);
  const want = nearest(value, f);
  const right = Number.isNaN(want)
    ? Number.isNaN(got)
    : Object.is(got, want) || (want === 0 && got === 0 && (half & 0x8000) === ((bits >>> 16) & 0x8000));
  if (!right) expect.fail(`0x${bits.toString(16)} (${value}) gave ${got}, not ${want}`);
}

describe.each(Object.entries(FORMATS))('%s', (_, f) => {
  test('every half has the value of its definition and comes back unchanged', () => {
    for (let half = 0; half < 0x10000; half++) {
      const wide = f.widen(half);
      const want = meaning(half, f);
      const got = f32Of(wide);
      if (!Object.is(got, want)) expect.fail(`0x${half.toString(16)} is ${want}, got ${got}`);
      if (Number.isNaN(want)) expect(f.narrow(wide) & 0x7fff).toBeGreaterThan(f.narrow(bitsOf(Infinity)));
      else if (f.narrow(wide) !== half) expect.fail(`0x${half.toString(16)} came back as ${f.narrow(wide)}`);
    }
  });

  test('around every half and every midpoint between two the nearest wins, ties to even', () => {
    for (let half = 0; half < 0x10000; half++) {
      const here = meaning(half, f);
      const next = meaning(half + 1, f);
      if (Number.isNaN(here) || Number.isNaN(next) || half === 0x7fff) continue;
      const top = Number.isFinite(next) ? next : Math.sign(next) * 2 ** (f.highest + 1);
      const middle = bitsOf(here + (top - here) / 2);
      for (const bits of [bitsOf(here), middle - 1, middle, middle + 1]) {
        if ((bits & 0x7fffffff) <= 0x7f800000) expectNarrow(bits >>> 0, f);
      }
    }
  });

  test('any f32 bits', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 0xffffffff }), (bits) => expectNarrow(bits, f)),
      { numRuns: 20_000 },
    );
  });

  test('NaN becomes a quiet NaN of the same sign', () => {
    const quiet = 2 ** (f.mantissa - 1);
    for (const bits of [0x7f800001, 0xff800001, 0x7fc00000, 0xffffffff, 0x7f801fff]) {
      const half = f.narrow(bits);
      expect(meaning(half, f)).toBeNaN();
      expect(half & quiet).toBe(quiet);
      expect(half >>> 15).toBe(bits >>> 31);
    }
  });
});

describe('arrays', () => {
  const values = Float32Array.from([1, -0, 0.1, 65504, 1e-8, -7.77, Infinity]);

  test.each(['F32', 'F16', 'BF16'] as const)('%s at an odd address equals the scalar code', (dtype) => {
    const width = dtype === 'F32' ? 4 : 2;
    for (const offset of [0, 1, 2, 3]) {
      const room = new Uint8Array(values.length * width + 8);
      const bytes = room.subarray(offset, offset + values.length * width);
      encodeFromF32(values, dtype, bytes);
      const back = new Float32Array(values.length);
      decodeToF32(bytes, dtype, back);
      const want = Array.from(values, (v) => {
        if (dtype === 'F32') return v;
        const f = FORMATS[dtype];
        return f32Of(f.widen(f.narrow(bitsOf(v))));
      });
      expect(Array.from(back)).toEqual(want);
      expect(room.subarray(offset + bytes.length).every((b) => b === 0)).toBe(true);
    }
  });

  test('every f16 decodes by table as by code, NaN payload included', () => {
    const halves = Uint16Array.from({ length: 0x10000 }, (_, i) => i);
    const out = new Float32Array(0x10000);
    decodeToF32(new Uint8Array(halves.buffer), 'F16', out);
    const bits = new Uint32Array(out.buffer);
    expect(bits.every((b, i) => b === f16ToF32(i))).toBe(true);
  });

  test('lengths that do not match are refused', () => {
    expect(() => decodeToF32(new Uint8Array(5), 'BF16', new Float32Array(2))).toThrow(/2 BF16 values/);
    expect(() => encodeFromF32(new Float32Array(2), 'F32', new Uint8Array(4))).toThrow(/2 F32 values/);
  });
});
