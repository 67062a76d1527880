/** Shared by the tests of the mathematics: inputs as layers see them, transfers to and from buffers. */
import type { Backend, BackendBuffer } from '../backend/backend';
import { philox } from '../backend/philox';
import type { TappedRows } from '../forward/pass';
import { createQueue } from '../forward/queue';
import { type Gram, type GramForm, openGram } from './gram';

/** Normal numbers, by seed. */
export function normals(n: number, seed: number): Float64Array<ArrayBuffer> {
  const words = new Uint32Array(4);
  return Float64Array.from({ length: n }, (_, i) => {
    philox(i, 0, seed, 7, words);
    const u = (words[0]! + 0.5) / 2 ** 32;
    return Math.sqrt(-2 * Math.log(u)) * Math.cos((2 * Math.PI * words[1]!) / 2 ** 32);
  });
}

/**
 * Inputs like those of a real layer, [rows, width]: columns correlated through `width`/4 directions whose strength falls off,
 * an outlier channel thirty times as loud, and dead inputs.
 */
export function layerInputs(
  rows: number,
  width: number,
  seed: number,
  dead: readonly number[] = [],
): Float32Array<ArrayBuffer> {
  const rank = width / 4;
  const mix = normals(rank * width, seed);
  const hidden = normals(rows * rank, seed + 1);
  const noise = normals(rows * width, seed + 2);
  const x = new Float32Array(rows * width);
  for (let r = 0; r < rows; r++) {
    for (let c = 0; c < width; c++) {
      let v = 0.2 * noise[r * width + c]!;
      for (let k = 0; k < rank; k++) v += (hidden[r * rank + k]! * mix[k * width + c]!) / (k + 1);
      x[r * width + c] = dead.includes(c) ? 0 : v * (c === 5 ? 30 : 1);
    }
  }
  return x;
}

export function upload(engine: Backend, data: Float32Array | Uint32Array, label = 'test'): BackendBuffer {
  const buffer = engine.allocate(Math.ceil(data.byteLength / 16) * 16, label);
  engine.write(buffer, 0, new Uint8Array(data.slice().buffer as ArrayBuffer));
  return buffer;
}

export async function download(
  engine: Backend,
  buffer: BackendBuffer,
  length: number,
): Promise<Float32Array> {
  const [bytes] = await engine.read([{ buffer, byteLength: length * 4 }]);
  return new Float32Array(bytes!.buffer);
}

/** Rows on the device as a tap sees them, with room between them. */
export function tapped(engine: Backend, x: Float32Array, width: number): TappedRows {
  const stride = width + 8;
  const rows = x.length / width;
  const wide = new Float32Array(rows * stride).fill(777);
  for (let r = 0; r < rows; r++) wide.set(x.subarray(r * width, (r + 1) * width), r * stride);
  return { buffer: upload(engine, wide), rows, width, stride, pieces: [], queue: createQueue(engine) };
}

/** The Gram matrix of some inputs, added `chunk` rows at a time. The caller closes it. */
export function gramOf(
  engine: Backend,
  x: Float32Array,
  width: number,
  form: GramForm = { kind: 'full' },
  chunk = x.length / width,
): Gram {
  const gram = openGram(engine, width, form);
  for (let begin = 0; begin < x.length; begin += chunk * width) {
    const rows = tapped(engine, x.subarray(begin, begin + chunk * width), width);
    gram.add(rows);
    engine.free(rows.buffer);
  }
  return gram;
}

/** max |a − b| / max |b|; NaN counts as infinitely far. */
export function farthest(a: ArrayLike<number>, b: ArrayLike<number>): number {
  let worst = 0;
  let largest = 0;
  for (let i = 0; i < b.length; i++) {
    const d = Math.abs(a[i]! - b[i]!);
    worst = d <= worst ? worst : Number.isNaN(d) ? Number.POSITIVE_INFINITY : d;
    largest = Math.max(largest, Math.abs(b[i]!));
  }
  return worst / largest;
}

/** max |a / b − 1| over entries where b is not 0; a must be 0 where b is. */
export function worstRatio(a: ArrayLike<number>, b: ArrayLike<number>): number {
  let worst = 0;
  for (let i = 0; i < b.length; i++) {
    const d = b[i] === 0 ? (a[i] === 0 ? 0 : Number.POSITIVE_INFINITY) : Math.abs(a[i]! / b[i]! - 1);
    worst = d <= worst ? worst : Number.isNaN(d) ? Number.POSITIVE_INFINITY : d;
  }
  return worst;
}
