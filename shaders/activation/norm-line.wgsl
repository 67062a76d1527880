// Norms of groups of elements (lib/norm.wgsl), an invocation each, without barriers: the form for software adapters.
// Tolerance: 1e-6 of the largest value.

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let all = params.rows * params.groups;
  let first = group_index(group) * 64u;
  if (lane == 0u && first < all) { stamp(min(64u, all - first)); }
  let index = first + lane;
  if (index >= all) { return; }
  let from_x = x_at(index);
  let n = f32(params.width4) * 4.0;
  var mean = 0.0;
  if (params.kind >= 2u) {
    var sum = vec4<f32>();
    for (var i = 0u; i < params.width4; i++) { sum += x[from_x + i]; }
    mean = sum_of(sum) / n;
  }
  var squares = vec4<f32>();
  for (var i = 0u; i < params.width4; i++) {
    let d = x[from_x + i] - mean;
    squares += d * d;
  }
  let inverse = 1.0 / sqrt(sum_of(squares) / n + params.epsilon);
  let to_y = y_at(index);
  for (var i = 0u; i < params.width4; i++) { y[to_y + i] = normed(x[from_x + i], mean, inverse, i); }
}
