// y[r, i] = f(x[r, i]), times x[r, inner + i] where gated. f: 0 SiLU, 1 exact GELU, 2 tanh GELU, 3 ReLU.
// Shapes: x [rows, x_stride], y [rows, y_stride], f32. Tolerance: 1e-6 of the largest value.

fn activation(v: f32) -> f32 {
  if (params.kind == 0u) { return v * sigmoid_f32(v); }
  if (params.kind == 1u) { return 0.5 * v * (1.0 + erf_f32(v * 0.70710678)); }
  if (params.kind == 2u) { return 0.5 * v * (1.0 + tanh_f32(0.79788456 * (v + 0.044715 * v * v * v))); }
  return max(v, 0.0);
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
    var value = activation(x[at]);
    if (params.gated == 1u) { value *= x[at + params.inner]; }
    y[row * params.y_stride + i] = value;
  }
}
