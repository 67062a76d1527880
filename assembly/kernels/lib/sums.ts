// Sums over blocks of 4096: lane l of 64 adds the elements l, l + 64, … and the lanes are added in order (docs/numbers.md).
import { BLOCK, flush, flushOne, hasSmall, rounded, roundedOne } from './lanes';

/** Adds the 64 lane sums at `lanes` in order. */
@inline
export function total(lanes: usize, small: bool): f32 {
  let sum: f32 = 0;
  for (let l = 0; l < 64; l++) sum = roundedOne(sum + load<f32>(lanes + (<usize>l << 2)), small);
  return sum;
}

@inline
function product(sum: v128, a: usize, b: usize, small: bool): v128 {
  return rounded(f32x4.add(sum, rounded(f32x4.mul(v128.load(a), v128.load(b)), small)), small);
}

/** Lane sums of a[e]·b[e], 32 bytes of lanes at a time in two accumulators each. */
@inline
function dotLanes(a: usize, b: usize, n: i32, lanes: usize, small: bool): f32 {
  const rows = n >> 6;
  for (let k: usize = 0; k < 256; k += 64) {
    let s0 = f32x4.splat(0);
    let s1 = s0;
    let s2 = s0;
    let s3 = s0;
    let p = a + k;
    let q = b + k;
    for (let row = 0; row < rows; row++) {
      s0 = product(s0, p, q, small);
      s1 = product(s1, p + 16, q + 16, small);
      s2 = product(s2, p + 32, q + 32, small);
      s3 = product(s3, p + 48, q + 48, small);
      p += 256;
      q += 256;
    }
    v128.store(lanes + k, s0);
    v128.store(lanes + k, s1, 16);
    v128.store(lanes + k, s2, 32);
    v128.store(lanes + k, s3, 48);
  }
  const at = <usize>(rows << 8);
  for (let l: usize = 0; l < <usize>(n & 63) << 2; l += 4) {
    const x = roundedOne(load<f32>(a + at + l) * load<f32>(b + at + l), small);
    store<f32>(lanes + l, roundedOne(load<f32>(lanes + l) + x, small));
  }
  return total(lanes, small);
}

/** Σ a[e]·b[e] of one block of n elements. `lanes`: 256 bytes of scratch. */
export function dotBlock(a: usize, b: usize, n: i32, small: bool, lanes: usize): f32 {
  return small ? dotLanes(a, b, n, lanes, true) : dotLanes(a, b, n, lanes, false);
}

/** Block sums of (out − base)². `scratch`: 256 bytes and a block of f32. */
export function changeSquares(base: usize, out: usize, elements: i32, sums: usize, scratch: usize): void {
  const change = scratch + 256;
  for (let begin = 0, block: usize = 0; begin < elements; begin += BLOCK, block += 4) {
    const n = min(BLOCK, elements - begin);
    const at = <usize>begin << 2;
    let e = 0;
    for (; e + 4 <= n; e += 4) {
      const p = at + (<usize>e << 2);
      v128.store(
        change + (<usize>e << 2),
        flush(f32x4.sub(v128.load(out + p), v128.load(base + p))),
      );
    }
    for (; e < n; e++) {
      const p = at + (<usize>e << 2);
      store<f32>(change + (<usize>e << 2), flushOne(load<f32>(out + p) - load<f32>(base + p)));
    }
    store<f32>(sums + block, dotBlock(change, change, n, hasSmall(change, n), scratch));
  }
}
