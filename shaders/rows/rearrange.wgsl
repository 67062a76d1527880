// The transpose of x, y[c, r] = x[r, c]. Tolerance: 0.
// Shapes: x [rows, cols], y [cols, rows] f32.

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let n = params.rows * params.cols;
  let begin = min(group_index(group) * 1024u, n);
  let end = min(begin + 1024u, n);
  for (var e = begin + lane; e < end; e += 64u) {
    y[e] = x[(e % params.rows) * params.cols + e / params.rows];
  }
  if (lane == 0u && begin < end) { stamp(end - begin); }
}
