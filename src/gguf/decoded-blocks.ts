/**
 * Blocks of a GGUF tensor → the numbers that they stand for, in the arithmetic of f32 that llama.cpp has (v0.5.0,
 * ggml/src/ggml-quants.c, dequantize_row_…; block layouts in ggml/src/ggml-common.h). Codes of a block are whole numbers; scales
 * are F16, themselves scaled by a few bits for a part of the block in the K types.
 */
import { decodeToF32, f16Table } from '../formats/half';
import { READ_TYPES } from './block-types';

/** Writes the elements of the block at `at` from `to` on. */
type DecodeBlock = (bytes: Uint8Array, at: number, out: Float32Array, to: number) => void;

const { fround } = Math;

let halves: Float32Array | undefined;

function half(bytes: Uint8Array, at: number): number {
  halves ??= new Float32Array(f16Table().buffer);
  return halves[bytes[at]! | (bytes[at + 1]! << 8)]!;
}

/** 32 elements: codes of four bits, the low halves of 16 bytes first, and the fifth bit of each at `high`. */
function simple(scaleBytes: 2 | 4, bits: 4 | 5): DecodeBlock {
  const codes = scaleBytes + (bits === 5 ? 4 : 0);
  const zero = scaleBytes === 4 ? 0 : 2 ** (bits - 1);
  return (bytes, at, out, to) => {
    const scale = half(bytes, at);
    // x + −0 is x, also where x is −0
    const least = scaleBytes === 4 ? half(bytes, at + 2) : -0;
    for (let i = 0; i < 16; i++) {
      const byte = bytes[at + codes + i]!;
      let [low, high] = [byte & 15, byte >> 4];
      if (bits === 5) {
        low |= ((bytes[at + scaleBytes + (i >> 3)]! >> (i & 7)) & 1) << 4;
        high |= ((bytes[at + scaleBytes + 2 + (i >> 3)]! >> (i & 7)) & 1) << 4;
      }
      out[to + i] = fround((low - zero) * scale) + least;
      out[to + i + 16] = fround((high - zero) * scale) + least;
    }
  };
}

const q80: DecodeBlock = (bytes, at, out, to) => {
  const scale = half(bytes, at);
  for (let i = 0; i < 32; i++) out[to + i] = ((bytes[at + 2 + i]! << 24) >> 24) * scale;
};

/** Sixteen scales and minima of four bits; codes of two bits, four planes of 32 a byte. */
const q2k: DecodeBlock = (bytes, at, out, to) => {
  const [scale, least] = [half(bytes, at + 80), half(bytes, at + 82)];
  for (let part = 0; part < 16; part++) {
    const packed = bytes[at + part]!;
    const [d, m] = [fround(scale * (packed & 15)), fround(least * (packed >> 4))];
    const from = at + 16 + (part >> 3) * 32 + (part & 1) * 16;
    const shift = part & 6;
    for (let i = 0; i < 16; i++) out[to + part * 16 + i] = fround(d * ((bytes[from + i]! >> shift) & 3)) - m;
  }
};

/** Sixteen scales of six bits, 32 above their value; codes of two bits as above, and a third that takes four away where it is 0. */
const q3k: DecodeBlock = (bytes, at, out, to) => {
  const [scale, scales] = [half(bytes, at + 108), at + 96];
  for (let part = 0; part < 16; part++) {
    const low = part < 8 ? bytes[scales + part]! & 15 : bytes[scales + part - 8]! >> 4;
    const high = (bytes[scales + 8 + (part & 3)]! >> (2 * (part >> 2))) & 3;
    const d = fround(scale * ((low | (high << 4)) - 32));
    const column = (part & 1) * 16;
    const from = at + 32 + (part >> 3) * 32 + column;
    const [shift, plane] = [part & 6, part >> 1];
    for (let i = 0; i < 16; i++) {
      const third = (bytes[at + column + i]! >> plane) & 1;
      out[to + part * 16 + i] = d * (((bytes[from + i]! >> shift) & 3) - 4 * (1 - third));
    }
  }
};

/** What the codes of four bits of a part stand for. */
const [EVEN, ODD] = [new Float32Array(16), new Float32Array(16)];

/** Eight scales and minima of six bits in twelve bytes; codes of four bits, 64 in 32 bytes, and the fifth bit in 32 bytes ahead. */
function withMinima(bits: 4 | 5): DecodeBlock {
  const codes = 16 + (bits === 5 ? 32 : 0);
  return (bytes, at, out, to) => {
    const [scale, least, six] = [half(bytes, at), half(bytes, at + 2), at + 4];
    for (let part = 0; part < 8; part++) {
      const [a, b] = [bytes[six + (part & 3)]!, bytes[six + (part & 3) + 4]!];
      const c = bytes[six + (part & 3) + 8]!;
      const isFirst = part < 4;
      const d = fround(scale * (isFirst ? a & 63 : (c & 15) | ((a >> 6) << 4)));
      const m = fround(least * (isFirst ? b & 63 : (c >> 4) | ((b >> 6) << 4)));
      const from = at + codes + (part >> 1) * 32;
      const begin = to + part * 32;
      if (bits === 4) {
        const table = part & 1 ? ODD : EVEN;
        for (let code = 0; code < 16; code++) table[code] = fround(d * code) - m;
        if (part & 1) bothHalves(bytes, from, out, begin - 32);
        continue;
      }
      const shift = (part & 1) * 4;
      for (let i = 0; i < 32; i++) {
        const code = ((bytes[from + i]! >> shift) & 15) | (((bytes[at + 16 + i]! >> part) & 1) << 4);
        out[begin + i] = fround(d * code) - m;
      }
    }
  };
}

function bothHalves(bytes: Uint8Array, from: number, out: Float32Array, to: number): void {
  for (let i = 0; i < 32; i++) {
    const byte = bytes[from + i]!;
    out[to + i] = EVEN[byte & 15]!;
    out[to + i + 32] = ODD[byte >> 4]!;
  }
}

/** Sixteen scales of eight bits; codes of four bits and of two above them, 32 above their value. */
const q6k: DecodeBlock = (bytes, at, out, to) => {
  const scale = half(bytes, at + 208);
  for (let part = 0; part < 16; part++) {
    const [side, plane, column] = [part >> 3, (part >> 1) & 3, (part & 1) * 16];
    const low = at + side * 64 + (plane & 1) * 32 + column;
    const high = at + 128 + side * 32 + column;
    const [shift, two] = [plane & 2 ? 4 : 0, 2 * plane];
    const d = fround(scale * ((bytes[at + 192 + part]! << 24) >> 24));
    const begin = to + part * 16;
    for (let i = 0; i < 16; i++) {
      const code = ((bytes[low + i]! >> shift) & 15) | (((bytes[high + i]! >> two) & 3) << 4);
      out[begin + i] = d * (code - 32);
    }
  }
};

/** What the sixteen codes of IQ4 stand for, and those of MXFP4 (twice E2M1). */
const IQ4 = [-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113];
const FP4 = [0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12];

/** 32 elements: the low halves of 16 bytes first, each a row of a table. */
function looked(bytes: Uint8Array, at: number, table: readonly number[], scale: number) {
  return (out: Float32Array, to: number) => {
    for (let i = 0; i < 16; i++) {
      const byte = bytes[at + i]!;
      out[to + i] = scale * table[byte & 15]!;
      out[to + i + 16] = scale * table[byte >> 4]!;
    }
  };
}

const iq4nl: DecodeBlock = (bytes, at, out, to) => looked(bytes, at + 2, IQ4, half(bytes, at))(out, to);

const iq4xs: DecodeBlock = (bytes, at, out, to) => {
  const scale = half(bytes, at);
  const high = bytes[at + 2]! | (bytes[at + 3]! << 8);
  for (let part = 0; part < 8; part++) {
    const low = (bytes[at + 4 + (part >> 1)]! >> (4 * (part & 1))) & 15;
    const six = low | (((high >> (2 * part)) & 3) << 4);
    looked(bytes, at + 8 + part * 16, IQ4, fround(scale * (six - 32)))(out, to + part * 32);
  }
};

const mxfp4: DecodeBlock = (bytes, at, out, to) =>
  looked(bytes, at + 1, FP4, 2 ** (bytes[at]! - 128))(out, to);

const DECODERS: Readonly<Record<string, DecodeBlock>> = {
  ...{ Q8_0: q80, Q4_0: simple(2, 4), Q4_1: simple(4, 4), Q5_0: simple(2, 5), Q5_1: simple(4, 5) },
  ...{ Q2_K: q2k, Q3_K: q3k, Q4_K: withMinima(4), Q5_K: withMinima(5), Q6_K: q6k },
  ...{ IQ4_NL: iq4nl, IQ4_XS: iq4xs, MXFP4: mxfp4 },
};

/**
 * Writes the elements of whole blocks.
 * @param type ggml's number of it, one of `READ_TYPES`
 * @param at where the first one comes
 */
export function decodeBlocks(type: number, bytes: Uint8Array, out: Float32Array, at: number): void {
  const { name, elements, bytes: blockBytes } = READ_TYPES.get(type)!;
  const blocks = bytes.byteLength / blockBytes;
  if (elements === 1) {
    decodeToF32(bytes, name as 'F32' | 'F16' | 'BF16', out.subarray(at, at + blocks));
    return;
  }
  const decode = DECODERS[name]!;
  for (let block = 0; block < blocks; block++) decode(bytes, block * blockBytes, out, at + block * elements);
}
