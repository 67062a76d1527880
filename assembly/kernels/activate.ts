// Activations of rows: shaders/activate.wgsl. An element’s bits depend on itself alone.
import { gate4, geluErf4, geluTanh4, putSome, some } from './lib/exponential';

@inline
function apply(kind: i32, v: v128): v128 {
  if (kind == 0) return gate4(v, v);
  if (kind == 1) return geluErf4(v);
  if (kind == 2) return geluTanh4(v);
  return f32x4.pmax(v, f32x4.splat(0));
}

/** One row; `kind` and `gated` are known when this is compiled. */
@inline
function row(x: usize, y: usize, inner: i32, gated: bool, kind: i32): void {
  const bytes = <usize>inner << 2;
  const whole = bytes & ~15;
  for (let e: usize = 0; e < whole; e += 16) {
    let v = apply(kind, v128.load(x + e));
    if (gated) v = f32x4.mul(v, v128.load(x + bytes + e));
    v128.store(y + e, v);
  }
  const rest = inner & 3;
  if (!rest) return;
  let v = apply(kind, some(x + whole, rest, 0));
  if (gated) v = f32x4.mul(v, some(x + bytes + whole, rest, 0));
  putSome(y + whole, rest, v);
}

/** y = f(x), times the second half of x's row where gated. kind: 0 SiLU, 1 exact GELU, 2 tanh GELU, 3 ReLU. */
export function activateRow(x: usize, y: usize, inner: i32, gated: bool, kind: i32): void {
  if (gated) {
    if (kind == 0) row(x, y, inner, true, 0);
    else if (kind == 1) row(x, y, inner, true, 1);
    else if (kind == 2) row(x, y, inner, true, 2);
    else row(x, y, inner, true, 3);
  } else if (kind == 0) row(x, y, inner, false, 0);
  else if (kind == 1) row(x, y, inner, false, 1);
  else if (kind == 2) row(x, y, inner, false, 2);
  else row(x, y, inner, false, 3);
}
