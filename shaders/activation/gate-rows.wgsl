// y[r, i] ← y[r, i] · f(x[r, x_begin + ⌊i / group⌋ · group_stride + (i mod group) · unit]).
// f: 0 sigmoid, 1 SiLU, 2 identity, 3 tanh GELU. unit = 0 takes one factor for a whole group, x_stride = 0 the same for all rows.
// Shapes: x [rows, x_stride], y [rows, y_stride], f32. Tolerance: 1e-6 of the largest value.

fn gate(v: f32) -> f32 {
  if (params.kind == 0u) { return sigmoid_f32(v); }
  if (params.kind == 1u) { return v * sigmoid_f32(v); }
  if (params.kind == 2u) { return v; }
  return 0.5 * v * (1.0 + tanh_f32(0.79788456 * (v + 0.044715 * v * v * v)));
}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let all = params.rows * params.width;
  let first = group_index(group) * 256u;
  if (lane == 0u && first < all) { stamp(min(256u, all - first)); }
  for (var e = first + lane; e < min(first + 256u, all); e += 64u) {
    let row = e / params.width;
    let i = e % params.width;
    let begin = params.x_begin + row * params.x_stride + (i / params.group) * params.group_stride;
    y[row * params.y_stride + i] *= gate(x[begin + (i % params.group) * params.unit]);
  }
}
