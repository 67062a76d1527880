// S += xᵀ·x on a run of tiles of the lower triangle, 8 × 8 each, with f32 sums: shaders/lib/input-gram.wgsl.

/** Rows of a panel: two of them take 16 KiB of scratch. More rows are summed in pieces, each folded into S. */
const PANEL_ROWS: i32 = 256;

/** Eight columns of x as [rows][8]; four and zeros where the matrix ends between. */
function pack(x: usize, pitch: usize, rows: i32, whole: bool, to: usize): void {
  const end = to + (<usize>rows << 5);
  while (to < end) {
    v128.store(to, v128.load(x));
    v128.store(to, whole ? v128.load(x, 16) : f32x4.splat(0), 16);
    x += pitch;
    to += 32;
  }
}

/** Adds a row of a tile to S and mirrors it into a column; `pitch` bytes a row of S. */
@inline
function fold(at: usize, mirrored: usize, pitch: usize, low: v128, high: v128, whole: bool): void {
  const a = f32x4.add(v128.load(at), low);
  v128.store(at, a);
  v128.store32_lane(mirrored, a, 0);
  v128.store32_lane(mirrored + pitch, a, 1);
  v128.store32_lane(mirrored + 2 * pitch, a, 2);
  v128.store32_lane(mirrored + 3 * pitch, a, 3);
  if (!whole) return;
  const b = f32x4.add(v128.load(at, 16), high);
  v128.store(at, b, 16);
  mirrored += 4 * pitch;
  v128.store32_lane(mirrored, b, 0);
  v128.store32_lane(mirrored + pitch, b, 1);
  v128.store32_lane(mirrored + 2 * pitch, b, 2);
  v128.store32_lane(mirrored + 3 * pitch, b, 3);
}

/** Four columns at `a` by the eight of panel `b`, folded into S at `at` and, turned around, at `mirrored`. */
function four(a: usize, b: usize, rows: i32, at: usize, mirrored: usize, pitch: usize, whole: bool): void {
  let s0 = f32x4.splat(0);
  let s1 = s0;
  let s2 = s0;
  let s3 = s0;
  let t0 = s0;
  let t1 = s0;
  let t2 = s0;
  let t3 = s0;
  const end = a + (<usize>rows << 5);
  while (a < end) {
    const low = v128.load(b);
    const high = v128.load(b, 16);
    const p = v128.load32_splat(a);
    s0 = f32x4.add(s0, f32x4.mul(p, low));
    t0 = f32x4.add(t0, f32x4.mul(p, high));
    const q = v128.load32_splat(a, 4);
    s1 = f32x4.add(s1, f32x4.mul(q, low));
    t1 = f32x4.add(t1, f32x4.mul(q, high));
    const r = v128.load32_splat(a, 8);
    s2 = f32x4.add(s2, f32x4.mul(r, low));
    t2 = f32x4.add(t2, f32x4.mul(r, high));
    const s = v128.load32_splat(a, 12);
    s3 = f32x4.add(s3, f32x4.mul(s, low));
    t3 = f32x4.add(t3, f32x4.mul(s, high));
    a += 32;
    b += 32;
  }
  fold(at, mirrored, pitch, s0, t0, whole);
  fold(at + pitch, mirrored + 4, pitch, s1, t1, whole);
  fold(at + 2 * pitch, mirrored + 8, pitch, s2, t2, whole);
  fold(at + 3 * pitch, mirrored + 12, pitch, s3, t3, whole);
}

/** The same on the diagonal: both sides are summed in one order, so that they agree to the bit. */
function fourOnDiagonal(a: usize, b: usize, rows: i32, at: usize, pitch: usize, whole: bool, scratch: usize): void {
  const zero = f32x4.splat(0);
  for (let i: usize = 0; i < 128; i += 16) v128.store(scratch + i, zero);
  // mirrored into scratch behind the tile, which nobody reads
  four(a, b, rows, scratch, scratch + 128, 32, whole);
  for (let i: usize = 0; i < 4; i++) {
    const from = scratch + i * 32;
    const to = at + i * pitch;
    v128.store(to, f32x4.add(v128.load(to), v128.load(from)));
    if (whole) v128.store(to, f32x4.add(v128.load(to, 16), v128.load(from, 16)), 16);
  }
}

/**
 * Tiles `first` … `end` − 1 of the lower triangle, counted row by row, over `rows` rows.
 * @param x first column of the first row, rows `pitch` bytes apart
 * @param s [width, width], width a multiple of 4
 */
export function inputGram(
  x: usize,
  pitch: usize,
  rows: i32,
  width: i32,
  s: usize,
  first: i32,
  end: i32,
  scratch: usize,
): void {
  const sPitch = <usize>width << 2;
  const left = scratch;
  const right = left + (PANEL_ROWS << 5);
  const spare = right + (PANEL_ROWS << 5);
  for (let row = 0; row < rows; row += PANEL_ROWS) {
    const n = min(PANEL_ROWS, rows - row);
    const from = x + <usize>row * pitch;
    let i = <i32>((Math.sqrt(8.0 * <f64>first + 1.0) - 1.0) * 0.5);
    let j = first - ((i * (i + 1)) >> 1);
    for (let tile = first; tile < end; i++, j = 0) {
      const iBegin = <usize>i << 5;
      const iWhole = 8 * i + 8 <= width;
      pack(from + iBegin, pitch, n, iWhole, left);
      for (; j <= i && tile < end; j++, tile++) {
        const jBegin = <usize>j << 5;
        const at = s + (<usize>i << 3) * sPitch + jBegin;
        if (i == j) {
          fourOnDiagonal(left, left, n, at, sPitch, iWhole, spare);
          if (iWhole) fourOnDiagonal(left + 16, left, n, at + 4 * sPitch, sPitch, true, spare);
          continue;
        }
        pack(from + jBegin, pitch, n, true, right);
        const mirrored = s + (<usize>j << 3) * sPitch + iBegin;
        four(left, right, n, at, mirrored, sPitch, true);
        if (iWhole) four(left + 16, right, n, at + 4 * sPitch, mirrored + 16, sPitch, true);
      }
    }
  }
}
