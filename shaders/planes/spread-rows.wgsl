// y[r, begin + c · width + i] += x[r, i] for c < copies: rows added to several runs of columns.
// Shapes: x [rows, width], y [rows, y_stride], f32. An invocation a column of x. Tolerance: 1e-6 of the largest value.

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let all = params.rows * params.width;
  let begin = group_index(group) * 64u;
  if (lane == 0u && begin < all) { stamp(min(64u, all - begin)); }
  let e = begin + lane;
  if (e >= all) { return; }
  let at = (e / params.width) * params.y_stride + params.y_begin + e % params.width;
  for (var c = 0u; c < params.copies; c++) { y[at + c * params.width] += x[e]; }
}
