// y[(y_first + r)·y_stride + y_begin + c] = (add ? y : 0) + scale · x[(x_first + r)·x_stride + x_begin + c] for rows × cols
// entries: columns of a matrix cut out, put back, or subtracted. Tolerance: 1e-6 of the largest value.
// Shapes: x [·, x_stride], y [·, y_stride] f32.

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let n = params.rows * params.cols;
  let begin = min(group_index(group) * 1024u, n);
  let end = min(begin + 1024u, n);
  for (var e = begin + lane; e < end; e += 64u) {
    let r = e / params.cols;
    let c = e % params.cols;
    let at = (params.y_first + r) * params.y_stride + params.y_begin + c;
    var v = params.scale * x[(params.x_first + r) * params.x_stride + params.x_begin + c];
    if (params.add == 1u) { v += y[at]; }
    y[at] = v;
  }
  if (lane == 0u && begin < end) { stamp(end - begin); }
}
