// Δ = scale · L·R on a run of flat elements, stored or added: shaders/low-rank.wgsl.
import { flush, flushOne, rounded, roundedOne } from './lanes';

@inline
function put(out: usize, sum: v128, scale: f32, add: bool): void {
  const scaled = flush(f32x4.mul(sum, f32x4.splat(scale)));
  v128.store(out, add ? flush(f32x4.add(v128.load(out), scaled)) : scaled);
}

/** Part of one row: n columns from `right` on. */
@inline
function rowPart(
  left: usize,
  right: usize,
  pitch: usize,
  rank: i32,
  out: usize,
  n: i32,
  scale: f32,
  add: bool,
  small: bool,
): void {
  let c = 0;
  for (; c + 16 <= n; c += 16) {
    let s0 = f32x4.splat(0);
    let s1 = s0;
    let s2 = s0;
    let s3 = s0;
    let r = right + (<usize>c << 2);
    for (let k = 0; k < rank; k++) {
      const l = v128.load32_splat(left + (<usize>k << 2));
      s0 = rounded(f32x4.add(s0, rounded(f32x4.mul(l, v128.load(r)), small)), small);
      s1 = rounded(f32x4.add(s1, rounded(f32x4.mul(l, v128.load(r, 16)), small)), small);
      s2 = rounded(f32x4.add(s2, rounded(f32x4.mul(l, v128.load(r, 32)), small)), small);
      s3 = rounded(f32x4.add(s3, rounded(f32x4.mul(l, v128.load(r, 48)), small)), small);
      r += pitch;
    }
    const to = out + (<usize>c << 2);
    put(to, s0, scale, add);
    put(to + 16, s1, scale, add);
    put(to + 32, s2, scale, add);
    put(to + 48, s3, scale, add);
  }
  for (; c < n; c++) {
    let sum: f32 = 0;
    let r = right + (<usize>c << 2);
    for (let k = 0; k < rank; k++) {
      sum = roundedOne(sum + roundedOne(load<f32>(left + (<usize>k << 2)) * load<f32>(r), small), small);
      r += pitch;
    }
    const to = out + (<usize>c << 2);
    const scaled = flushOne(sum * scale);
    store<f32>(to, add ? flushOne(load<f32>(to) + scaled) : scaled);
  }
}

/**
 * Elements first … first + n − 1 of a matrix with `cols` columns. `left` [rows, rank] and `right` [rank, cols] are whole;
 * `small`: one of their values is (lanes.ts).
 */
export function lowRank(
  left: usize,
  right: usize,
  cols: i32,
  rank: i32,
  out: usize,
  first: f64,
  n: i32,
  scale: f32,
  add: bool,
  small: bool,
): void {
  const pitch = <usize>cols << 2;
  const row = <i64>first / cols;
  let col = <i32>(<i64>first - row * cols);
  let l = left + (<usize>row * <usize>rank << 2);
  for (let e = 0; e < n; ) {
    const part = min(cols - col, n - e);
    const r = right + (<usize>col << 2);
    const to = out + (<usize>e << 2);
    if (small) rowPart(l, r, pitch, rank, to, part, scale, add, true);
    else rowPart(l, r, pitch, rank, to, part, scale, add, false);
    e += part;
    col = 0;
    l += <usize>rank << 2;
  }
}
