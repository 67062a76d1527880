// y[r, i] = f(x[r, i]), times x[r, inner + i] where gated. f: lib/activation.wgsl.
// Shapes: x [rows, x_stride], y [rows, y_stride], f32. Tolerance: 1e-6 of the largest value.

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let all = params.rows * params.inner;
  let first = group_index(group) * 256u;
  if (lane == 0u && first < all) { stamp(min(256u, all - first)); }
  for (var e = first + lane; e < min(first + 256u, all); e += 64u) {
    let row = e / params.inner;
    let i = e % params.inner;
    let at = row * params.x_stride + i;
    var value = activation(params.kind, x[at]);
    if (params.gated == 1u) { value *= x[at + params.inner]; }
    y[row * params.y_stride + i] = value;
  }
}
