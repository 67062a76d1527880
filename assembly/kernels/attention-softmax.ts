// Softmax of lines of attention scores: shaders/attention-softmax-line.wgsl. Exponentials in f32 (lib/exponential.ts), their sums
// in f64. A line’s bits depend on its own numbers alone.
import { exp4, largest, plus4, sumOf } from './lib/exponential';

const NOTHING: f32 = -Infinity;

/** Lanes of the quad at column c that lie in [first, end). */
@inline
function seen(c: i32, first: i32, end: i32): v128 {
  const columns = i32x4.add(i32x4.splat(c), i32x4(0, 1, 2, 3));
  return v128.and(i32x4.ge_s(columns, i32x4.splat(first)), i32x4.lt_s(columns, i32x4.splat(end)));
}

/** The quad at p, column c, with −∞ where it lies outside [first, end). */
@inline
function quad(p: usize, c: i32, first: i32, end: i32): v128 {
  const v = v128.load(p);
  if (c >= first && c + 4 <= end) return v;
  return v128.bitselect(v, f32x4.splat(NOTHING), seen(c, first, end));
}

/** Softmax over columns [first, end) of a line of `columns` (a multiple of 4), in place; the others become 0. */
export function softmaxLine(line: usize, columns: i32, first: i32, end: i32): void {
  const from = first & ~3;
  const to = min(columns, (end + 3) & ~3);
  // a NaN may get lost here; its own exponential brings it back
  let tops = f32x4.splat(NOTHING);
  for (let c = from; c < to; c += 4) tops = f32x4.pmax(tops, quad(line + (<usize>c << 2), c, first, end));
  const top = f32x4.splat(largest(tops));
  let sums = f64x2.splat(0);
  for (let c = from; c < to; c += 4) {
    const p = line + (<usize>c << 2);
    const e = exp4(f32x4.sub(quad(p, c, first, end), top));
    v128.store(p, e);
    sums = plus4(sums, e);
  }
  const total = f32x4.splat(<f32>sumOf(sums));
  for (let c = from; c < to; c += 4) {
    const p = line + (<usize>c << 2);
    v128.store(p, f32x4.div(v128.load(p), total));
  }
  memory.fill(line, 0, <usize>from << 2);
  if (to < columns) memory.fill(line + (<usize>to << 2), 0, <usize>(columns - to) << 2);
}
