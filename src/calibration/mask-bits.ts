/** Masks of one bit per entry on the host: row after row, least significant bit first, rows filled up to 32 bits. */
import { maskRowWords } from '../backend/kernels/select';

/** Number of bits set. */
export function countBits(words: Uint32Array): number {
  let count = 0;
  for (let w of words) {
    w -= (w >>> 1) & 0x55555555;
    w = (w & 0x33333333) + ((w >>> 2) & 0x33333333);
    count += Math.imul((w + (w >>> 4)) & 0x0f0f0f0f, 0x01010101) >>> 24;
  }
  return count;
}

/** The bits of the flat indices [begin, end) of a mask [rows, cols], from the lowest bit of the first word on. */
export function flatBits(
  words: Uint32Array,
  cols: number,
  begin: number,
  end: number,
): Uint32Array<ArrayBuffer> {
  const out = new Uint32Array(Math.ceil((end - begin) / 32));
  if (cols % 32 === 0 && begin % 32 === 0) {
    out.set(words.subarray(begin / 32, begin / 32 + out.length));
    return out;
  }
  const perRow = maskRowWords(cols);
  for (let e = begin; e < end; e++) {
    const [row, col] = [Math.floor(e / cols), e % cols];
    const bit = (words[row * perRow + (col >>> 5)]! >>> (col & 31)) & 1;
    out[(e - begin) >>> 5]! |= bit << ((e - begin) & 31);
  }
  return out;
}

/** The mask [cols, rows] of the transposed matrix. */
export function transposeBits(words: Uint32Array, rows: number, cols: number): Uint32Array<ArrayBuffer> {
  const [from, to] = [maskRowWords(cols), maskRowWords(rows)];
  const out = new Uint32Array(cols * to);
  for (let r = 0; r < rows; r++) {
    for (let c = 0; c < cols; c++) {
      const bit = (words[r * from + (c >>> 5)]! >>> (c & 31)) & 1;
      out[c * to + (r >>> 5)]! |= bit << (r & 31);
    }
  }
  return out;
}

/** Values where the mask has a bit, row after row. */
export function pack(
  values: Float32Array,
  words: Uint32Array,
  rows: number,
  cols: number,
): Float32Array<ArrayBuffer> {
  const out = new Float32Array(countBits(words));
  const perRow = maskRowWords(cols);
  let at = 0;
  for (let r = 0; r < rows; r++) {
    for (let c = 0; c < cols; c++) {
      if ((words[r * perRow + (c >>> 5)]! >>> (c & 31)) & 1) out[at++] = values[r * cols + c]!;
    }
  }
  return out;
}

/** Values put back where a flat mask has a bit, zero elsewhere. */
export function unpack(bits: Uint32Array, packed: Float32Array, elements: number): Float32Array<ArrayBuffer> {
  const out = new Float32Array(elements);
  let at = 0;
  for (let e = 0; e < elements; e++) if ((bits[e >>> 5]! >>> (e & 31)) & 1) out[e] = packed[at++]!;
  return out;
}
