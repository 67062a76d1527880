import type { TappedRows } from '../forward/pass';

/** Copies the rows a tap sees to the host, [rows · width]; waits for the device. */
export async function readRows({
  buffer,
  rows,
  width,
  stride,
  queue,
}: TappedRows): Promise<Float32Array<ArrayBuffer>> {
  const [bytes] = await queue.read([{ buffer, byteLength: ((rows - 1) * stride + width) * 4 }]);
  const all = new Float32Array(bytes!.buffer);
  if (stride === width) return all;
  const out = new Float32Array(rows * width);
  for (let r = 0; r < rows; r++) out.set(all.subarray(r * stride, r * stride + width), r * width);
  return out;
}

/** Pieces put one behind the other. */
export function joinRows(pieces: readonly Float32Array[]): Float32Array<ArrayBuffer> {
  const out = new Float32Array(pieces.reduce((sum, piece) => sum + piece.length, 0));
  let at = 0;
  for (const piece of pieces) {
    out.set(piece, at);
    at += piece.length;
  }
  return out;
}

/** ⟨a, b⟩ of two stretches, in f64. */
export function dot(
  a: Float32Array,
  aBegin: number,
  b: Float32Array,
  bBegin: number,
  length: number,
): number {
  let sum = 0;
  for (let i = 0; i < length; i++) sum += a[aBegin + i]! * b[bBegin + i]!;
  return sum;
}
