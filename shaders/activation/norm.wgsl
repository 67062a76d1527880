// Norms of groups of elements (lib/norm.wgsl), a workgroup each (lib/row-group.wgsl): the form for real GPUs.
// Tolerance: 1e-6 of the largest value.

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let index = group_index(group);
  let from_x = x_at(min(index, params.rows * params.groups - 1u));
  let n = f32(params.width4) * 4.0;
  var mean = 0.0;
  if (params.kind >= 2u) {
    var sum = vec4<f32>();
    for (var i = lane; i < params.width4; i += 64u) { sum += x[from_x + i]; }
    mean = row_sum(lane, sum_of(sum)) / n;
  }
  var squares = vec4<f32>();
  for (var i = lane; i < params.width4; i += 64u) {
    let d = x[from_x + i] - mean;
    squares += d * d;
  }
  let inverse = 1.0 / sqrt(row_sum(lane, sum_of(squares)) / n + params.epsilon);
  if (index >= params.rows * params.groups) { return; }
  let to_y = y_at(index);
  for (var i = lane; i < params.width4; i += 64u) { y[to_y + i] = normed(x[from_x + i], mean, inverse, i); }
  if (lane == 0u) { stamp(1u); }
}
