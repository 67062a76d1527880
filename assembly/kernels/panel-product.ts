// Products of a matrix with a narrow one: shaders/panel-product.wgsl and panel-product-transposed.wgsl, to the bit. Both go
// through the matrix in blocks of 64 by 64, which are first laid side by side, so that rows that lie a power of two apart
// do not drive each other from the cache. A block's sums begin at zero and are added to the result in order.
import { flush, hasSmall, rounded } from './lib/lanes';

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
