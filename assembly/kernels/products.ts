import { dotBlock, flush, hasSmall, rounded } from './lib/lanes';

export { measureChanges } from './lib/stored-changes';

// Products of all pairs of vectors: shaders/products/inner-products.wgsl.

/**
 * Products of all pairs of `count` vectors that lie `stride` bytes apart from `values` on, run by run of `run` elements, into
 * `sums`. `scratch`: 256 bytes and a word per vector.
 */
export function innerProducts(values: usize, stride: usize, count: i32, elements: i32, run: i32, sums: usize, scratch: usize): void {
  const flags = scratch + 256;
  let out = sums;
  for (let begin = 0; begin < elements; begin += run) {
    const n = min(run, elements - begin);
    const at = values + (<usize>begin << 2);
    for (let i = 0; i < count; i++) {
      store<u32>(flags + (<usize>i << 2), <u32>hasSmall(at + <usize>i * stride, n));
    }
    for (let i = 0; i < count; i++) {
      for (let j = i; j < count; j++) {
        const small = (load<u32>(flags + (<usize>i << 2)) | load<u32>(flags + (<usize>j << 2))) != 0;
        store<f32>(out, dotBlock(at + <usize>i * stride, at + <usize>j * stride, n, small, scratch));
        out += 4;
      }
    }
  }
}

// Products of a matrix with a narrow one: shaders/products/panel-product.wgsl and panel-product-transposed.wgsl, to the bit. Both go
// through the matrix in blocks of 64 by 64, which are first laid side by side, so that rows that lie a power of two apart
// do not drive each other from the cache. A block's sums begin at zero and are added to the result in order.

/** Terms of one chunk of a sum. */
const CHUNK: i32 = 64;
/** Bytes from one row of a block to the next. */
const BLOCK_PITCH: usize = 256;

@inline
function term(sum: v128, p: v128, v: v128, small: bool): v128 {
  return rounded(f32x4.add(sum, rounded(f32x4.mul(p, v), small)), small);
}

@inline
function addTo(out: usize, sum: v128): void {
  v128.store(out, flush(f32x4.add(v128.load(out), sum)));
}

/** Two outputs of twelve columns: element (output, term) of the block lies at a + output · outer + term · inner. */
@inline
function twoByThree(a: usize, outer: usize, inner: usize, terms: i32, x: usize, pitch: usize, out: usize, small: bool): void {
  let a0 = f32x4.splat(0);
  let a1 = a0;
  let a2 = a0;
  let b0 = a0;
  let b1 = a0;
  let b2 = a0;
  let b = a + outer;
  for (let t = 0; t < terms; t++) {
    const x0 = v128.load(x);
    const x1 = v128.load(x, 16);
    const x2 = v128.load(x, 32);
    const p = v128.load32_splat(a);
    a0 = term(a0, p, x0, small);
    a1 = term(a1, p, x1, small);
    a2 = term(a2, p, x2, small);
    const q = v128.load32_splat(b);
    b0 = term(b0, q, x0, small);
    b1 = term(b1, q, x1, small);
    b2 = term(b2, q, x2, small);
    a += inner;
    b += inner;
    x += pitch;
  }
  addTo(out, a0);
  addTo(out + 16, a1);
  addTo(out + 32, a2);
  addTo(out + pitch, b0);
  addTo(out + pitch + 16, b1);
  addTo(out + pitch + 32, b2);
}

/** One output of four columns. */
@inline
function oneByOne(a: usize, inner: usize, terms: i32, x: usize, pitch: usize, out: usize, small: bool): void {
  let sum = f32x4.splat(0);
  for (let t = 0; t < terms; t++) {
    sum = term(sum, v128.load32_splat(a), v128.load(x), small);
    a += inner;
    x += pitch;
  }
  addTo(out, sum);
}

/** Four outputs of four columns. */
@inline
function fourByOne(a: usize, outer: usize, inner: usize, terms: i32, x: usize, pitch: usize, out: usize, small: bool): void {
  let s0 = f32x4.splat(0);
  let s1 = s0;
  let s2 = s0;
  let s3 = s0;
  let b = a + outer;
  let c = b + outer;
  let d = c + outer;
  for (let t = 0; t < terms; t++) {
    const v = v128.load(x);
    s0 = term(s0, v128.load32_splat(a), v, small);
    s1 = term(s1, v128.load32_splat(b), v, small);
    s2 = term(s2, v128.load32_splat(c), v, small);
    s3 = term(s3, v128.load32_splat(d), v, small);
    a += inner;
    b += inner;
    c += inner;
    d += inner;
    x += pitch;
  }
  addTo(out, s0);
  addTo(out + pitch, s1);
  addTo(out + 2 * pitch, s2);
  addTo(out + 3 * pitch, s3);
}

/** Adds the products of a block to `outputs` rows of the result, `pitch` bytes each. */
@inline
function addBlock(
  a: usize,
  outer: usize,
  inner: usize,
  outputs: i32,
  terms: i32,
  x: usize,
  pitch: usize,
  out: usize,
  small: bool,
): void {
  let c: usize = 0;
  for (; c + 48 <= pitch; c += 48) {
    let o = 0;
    for (; o + 2 <= outputs; o += 2) {
      twoByThree(a + <usize>o * outer, outer, inner, terms, x + c, pitch, out + <usize>o * pitch + c, small);
    }
    if (o < outputs) {
      for (let i: usize = 0; i < 48; i += 16) {
        oneByOne(a + <usize>o * outer, inner, terms, x + c + i, pitch, out + <usize>o * pitch + c + i, small);
      }
    }
  }
  for (; c < pitch; c += 16) {
    let o = 0;
    for (; o + 4 <= outputs; o += 4) {
      fourByOne(a + <usize>o * outer, outer, inner, terms, x + c, pitch, out + <usize>o * pitch + c, small);
    }
    for (; o < outputs; o++) {
      oneByOne(a + <usize>o * outer, inner, terms, x + c, pitch, out + <usize>o * pitch + c, small);
    }
  }
}

function plainBlock(a: usize, outer: usize, inner: usize, outputs: i32, terms: i32, x: usize, pitch: usize, out: usize): void {
  addBlock(a, outer, inner, outputs, terms, x, pitch, out, false);
}

function exactBlock(a: usize, outer: usize, inner: usize, outputs: i32, terms: i32, x: usize, pitch: usize, out: usize): void {
  addBlock(a, outer, inner, outputs, terms, x, pitch, out, true);
}

/** Copies a block of the panel to `to`; true where it holds what can make a product subnormal. */
function layOut(panel: usize, pitch: usize, rows: i32, cols: i32, to: usize): bool {
  let small = false;
  for (let r = 0; r < rows; r++) {
    const out = to + <usize>r * BLOCK_PITCH;
    memory.copy(out, panel + <usize>r * pitch, <usize>cols << 2);
    if (cols < CHUNK) small = hasSmall(out, cols) || small;
  }
  return cols < CHUNK ? small : hasSmall(to, rows * CHUNK);
}

/**
 * Y = P·X: panel [rows, cols], x [cols, 4·k4], y [rows, 4·k4].
 * @param small whether x holds what can make a product subnormal; @param scratch 16 KiB
 */
export function panelProduct(panel: usize, rows: i32, cols: i32, x: usize, k4: i32, y: usize, small: bool, scratch: usize): void {
  const pitch = <usize>k4 << 4;
  memory.fill(y, 0, <usize>rows * pitch);
  for (let r = 0; r < rows; r += CHUNK) {
    const outputs = min(CHUNK, rows - r);
    const out = y + <usize>r * pitch;
    for (let j = 0; j < cols; j += CHUNK) {
      const terms = min(CHUNK, cols - j);
      const from = panel + ((<usize>r * <usize>cols + <usize>j) << 2);
      const tiny = layOut(from, <usize>cols << 2, outputs, terms, scratch) || small;
      const narrow = x + <usize>j * pitch;
      if (tiny) exactBlock(scratch, BLOCK_PITCH, 4, outputs, terms, narrow, pitch, out);
      else plainBlock(scratch, BLOCK_PITCH, 4, outputs, terms, narrow, pitch, out);
    }
  }
}

/** Z += Pᵀ·Y: panel [rows, cols], y [rows, 4·k4], z [cols, 4·k4]. The rest as for {@link panelProduct}. */
export function panelProductTransposed(
  panel: usize,
  rows: i32,
  cols: i32,
  y: usize,
  k4: i32,
  z: usize,
  small: bool,
  scratch: usize,
): void {
  const pitch = <usize>k4 << 4;
  for (let r = 0; r < rows; r += CHUNK) {
    const terms = min(CHUNK, rows - r);
    const narrow = y + <usize>r * pitch;
    for (let j = 0; j < cols; j += CHUNK) {
      const outputs = min(CHUNK, cols - j);
      const from = panel + ((<usize>r * <usize>cols + <usize>j) << 2);
      const tiny = layOut(from, <usize>cols << 2, terms, outputs, scratch) || small;
      const out = z + <usize>j * pitch;
      if (tiny) exactBlock(scratch, 4, BLOCK_PITCH, outputs, terms, narrow, pitch, out);
      else plainBlock(scratch, 4, BLOCK_PITCH, outputs, terms, narrow, pitch, out);
    }
  }
}

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

/** Four columns at `a` by the eight of panel `b`, added to S at `at` and, transposed, at `mirrored`. */
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
