// y[r] = x[rows[r]]: chosen rows, side by side. Shapes: x [·, width], picks [rows], y [rows, width], f32.
// Tolerance: 0.

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let row = group_index(group);
  if (row >= params.rows) { return; }
  for (var i = lane; i < params.width; i += 64u) {
    y[row * params.width + i] = x[picks[row] * params.width + i];
  }
  if (lane == 0u) { stamp(1u); }
}
