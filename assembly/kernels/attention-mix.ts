// Values mixed by their shares for one group of rows and one head, with f32 sums: shaders/attention-mix.wgsl. Pitches are bytes
// from one row to the next.

/** Eight dimensions of four rows. */
function mixFour(shares: usize, sharePitch: usize, v: usize, vPitch: usize, n: i32, y: usize, yPitch: usize): void {
  let a = f32x4.splat(0);
  let b = a;
  let c = a;
  let d = a;
  let e = a;
  let f = a;
  let g = a;
  let h = a;
  let s1 = shares + sharePitch;
  let s2 = s1 + sharePitch;
  let s3 = s2 + sharePitch;
  const end = shares + (<usize>n << 2);
  while (shares < end) {
    const low = v128.load(v);
    const high = v128.load(v, 16);
    const p = v128.load32_splat(shares);
    a = f32x4.add(a, f32x4.mul(p, low));
    b = f32x4.add(b, f32x4.mul(p, high));
    const q = v128.load32_splat(s1);
    c = f32x4.add(c, f32x4.mul(q, low));
    d = f32x4.add(d, f32x4.mul(q, high));
    const r = v128.load32_splat(s2);
    e = f32x4.add(e, f32x4.mul(r, low));
    f = f32x4.add(f, f32x4.mul(r, high));
    const s = v128.load32_splat(s3);
    g = f32x4.add(g, f32x4.mul(s, low));
    h = f32x4.add(h, f32x4.mul(s, high));
    shares += 4;
    s1 += 4;
    s2 += 4;
    s3 += 4;
    v += vPitch;
  }
  v128.store(y, a);
  v128.store(y, b, 16);
  v128.store(y + yPitch, c);
  v128.store(y + yPitch, d, 16);
  v128.store(y + 2 * yPitch, e);
  v128.store(y + 2 * yPitch, f, 16);
  v128.store(y + 3 * yPitch, g);
  v128.store(y + 3 * yPitch, h, 16);
}

/** Sixteen dimensions of one row. */
function mixWide(shares: usize, v: usize, vPitch: usize, n: i32, y: usize): void {
  let a = f32x4.splat(0);
  let b = a;
  let c = a;
  let d = a;
  const end = shares + (<usize>n << 2);
  for (; shares < end; shares += 4) {
    const p = v128.load32_splat(shares);
    a = f32x4.add(a, f32x4.mul(p, v128.load(v)));
    b = f32x4.add(b, f32x4.mul(p, v128.load(v, 16)));
    c = f32x4.add(c, f32x4.mul(p, v128.load(v, 32)));
    d = f32x4.add(d, f32x4.mul(p, v128.load(v, 48)));
    v += vPitch;
  }
  v128.store(y, a);
  v128.store(y, b, 16);
  v128.store(y, c, 32);
  v128.store(y, d, 48);
}

/** Four dimensions of one row. */
function mixNarrow(shares: usize, v: usize, vPitch: usize, n: i32, y: usize): void {
  let a = f32x4.splat(0);
  const end = shares + (<usize>n << 2);
  for (; shares < end; shares += 4) {
    a = f32x4.add(a, f32x4.mul(v128.load32_splat(shares), v128.load(v)));
    v += vPitch;
  }
  v128.store(y, a);
}

/** y [rows][dim] of up to four rows: the first `keys` values from `v` on, by shares [rows][span]. */
export function attentionMix(
  shares: usize,
  sharePitch: usize,
  rows: i32,
  v: usize,
  vPitch: usize,
  keys: i32,
  dim: i32,
  y: usize,
  yPitch: usize,
): void {
  const bytes = <usize>dim << 2;
  let whole: usize = 0;
  if (rows == 4) {
    for (; whole + 32 <= bytes; whole += 32) mixFour(shares, sharePitch, v + whole, vPitch, keys, y + whole, yPitch);
  }
  for (let r = 0; r < rows; r++) {
    const line = shares + <usize>r * sharePitch;
    const to = y + <usize>r * yPitch;
    let at = whole;
    for (; at + 64 <= bytes; at += 64) mixWide(line, v + at, vPitch, keys, to + at);
    for (; at < bytes; at += 16) mixNarrow(line, v + at, vPitch, keys, to + at);
  }
}
