// Y = P·X for a panel P of whole rows and a narrow X: y[(y_row + r) · 4·k4 + c] = Σ_j p[r, j] · x[j, c].
// Columns j are summed in chunks of 64, in order, and chunk sums in order, every product and sum rounded to f32: same
// bits on CPU and GPU, and the error of a long sum stays near that of one chunk.
// One invocation makes four rows of one quad of columns. Shapes: panel rows·cols f32 at `first`, x [cols, 4·k4], y [·, 4·k4].

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let items = ((params.rows + 3u) / 4u) * params.k4;
  let first_item = group_index(group) * 64u;
  if (lane == 0u && first_item < items) { stamp(min(64u, items - first_item)); }
  let item = first_item + lane;
  if (item >= items) { return; }
  let c = item % params.k4;
  let r = (item / params.k4) * 4u;
  let last = params.rows - 1u;
  let at = params.first + min(vec4<u32>(r, r + 1u, r + 2u, r + 3u), vec4<u32>(last)) * params.cols;
  var y0 = vec4<f32>();
  var y1 = vec4<f32>();
  var y2 = vec4<f32>();
  var y3 = vec4<f32>();
  for (var begin = 0u; begin < params.cols; begin += 64u) {
    let end = min(begin + 64u, params.cols);
    var s0 = vec4<f32>();
    var s1 = vec4<f32>();
    var s2 = vec4<f32>();
    var s3 = vec4<f32>();
    for (var j = begin; j < end; j++) {
      let v = x[j * params.k4 + c];
      s0 = exact4(s0 + exact4(panel[at.x + j] * v));
      s1 = exact4(s1 + exact4(panel[at.y + j] * v));
      s2 = exact4(s2 + exact4(panel[at.z + j] * v));
      s3 = exact4(s3 + exact4(panel[at.w + j] * v));
    }
    y0 = exact4(y0 + s0);
    y1 = exact4(y1 + s1);
    y2 = exact4(y2 + s2);
    y3 = exact4(y3 + s3);
  }
  let out = (params.y_row + r) * params.k4 + c;
  y[out] = y0;
  if (r + 1u <= last) { y[out + params.k4] = y1; }
  if (r + 2u <= last) { y[out + 2u * params.k4] = y2; }
  if (r + 3u <= last) { y[out + 3u * params.k4] = y3; }
}
