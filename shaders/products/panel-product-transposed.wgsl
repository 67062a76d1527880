// Z += Pᵀ·Y for a panel P of whole rows and a narrow Y: z[j, c] += Σ_r p[r, j] · y[y_row + r, c].
// Rows r are summed in chunks of 64 from the panel's first row, in order, and chunk sums are added to z in order, every
// product and sum rounded to f32: same bits on CPU and GPU, and the same wherever a matrix is cut into panels of whole
// chunks. One invocation makes four columns j of one quad c.
// Shapes: panel rows·cols f32 at `first`, y [·, 4·k4], z [cols, 4·k4].

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let items = ((params.cols + 3u) / 4u) * params.k4;
  let first_item = group_index(group) * 64u;
  if (lane == 0u && first_item < items) { stamp(min(64u, items - first_item)); }
  let item = first_item + lane;
  if (item >= items) { return; }
  let c = item % params.k4;
  let column = (item / params.k4) * 4u;
  let last = params.cols - 1u;
  let j = min(vec4<u32>(column, column + 1u, column + 2u, column + 3u), vec4<u32>(last));
  let out = j * params.k4 + c;
  var z0 = z[out.x];
  var z1 = z[out.y];
  var z2 = z[out.z];
  var z3 = z[out.w];
  for (var begin = 0u; begin < params.rows; begin += 64u) {
    let end = min(begin + 64u, params.rows);
    var s0 = vec4<f32>();
    var s1 = vec4<f32>();
    var s2 = vec4<f32>();
    var s3 = vec4<f32>();
    for (var r = begin; r < end; r++) {
      let at = params.first + r * params.cols;
      let v = y[(params.y_row + r) * params.k4 + c];
      s0 = exact4(s0 + exact4(panel[at + j.x] * v));
      s1 = exact4(s1 + exact4(panel[at + j.y] * v));
      s2 = exact4(s2 + exact4(panel[at + j.z] * v));
      s3 = exact4(s3 + exact4(panel[at + j.w] * v));
    }
    z0 = exact4(z0 + s0);
    z1 = exact4(z1 + s1);
    z2 = exact4(z2 + s2);
    z3 = exact4(z3 + s3);
  }
  z[out.x] = z0;
  if (column + 1u <= last) { z[out.y] = z1; }
  if (column + 2u <= last) { z[out.z] = z2; }
  if (column + 3u <= last) { z[out.w] = z3; }
}
