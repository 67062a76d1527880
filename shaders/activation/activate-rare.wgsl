// y[r, i] = f(x[r, i]), times x[r, inner + i] where gated. f: 0 ReLU², 1 xIELU (Huang and Schlag 2024, arXiv 2411.13010;
// x > 0: xp·x² + beta·x, else xn·(e^min(x, floor) − 1 − x) + beta·x). kind 2 is GPT-OSS's (u + 1) · g · σ(1.702 g) with
// g = min(x[r, 2i], 7), u = x[r, 2i + 1] within ±7.
// Shapes: x [rows, x_stride], y [rows, y_stride], f32. Tolerance: 1e-6 of the largest value.

fn activation(v: f32) -> f32 {
  if (params.kind == 0u) { return max(v, 0.0) * max(v, 0.0); }
  if (v > 0.0) { return params.xp * v * v + params.beta * v; }
  return (expm1_f32(min(v, params.floor)) - v) * params.xn + params.beta * v;
}

fn swiglu(at: u32) -> f32 {
  let g = min(x[at], 7.0);
  return (clamp(x[at + 1u], -7.0, 7.0) + 1.0) * g * sigmoid_f32(1.702 * g);
}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let all = params.rows * params.inner;
  let first = group_index(group) * 256u;
  if (lane == 0u && first < all) { stamp(min(256u, all - first)); }
  for (var e = first + lane; e < min(first + 256u, all); e += 64u) {
    let row = e / params.inner;
    let i = e % params.inner;
    let at = row * params.x_stride + i;
    var value = 0.0;
    if (params.kind == 2u) { value = swiglu(row * params.x_stride + 2u * i); }
    else { value = activation(x[at]); }
    if (params.gated == 1u && params.kind != 2u) { value *= x[at + params.inner]; }
    y[row * params.y_stride + i] = value;
  }
}
