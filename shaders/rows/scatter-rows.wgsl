// y[picks[r], i] ← y[picks[r], i] + factors[r] · x[r, i]; no row is picked twice.
// Shapes: x [rows, x_stride], picks and factors [rows], y [·, y_stride], f32. Tolerance: 2e-7 of the largest value.

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let row = group_index(group);
  if (row >= params.rows) { return; }
  for (var i = lane; i < params.width; i += 64u) {
    y[picks[row] * params.y_stride + i] += factors[row] * x[row * params.x_stride + i];
  }
  if (lane == 0u) { stamp(1u); }
}
