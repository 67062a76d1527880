// x ← cap(factor · x) in place; cap(x) = c · tanh(x / c), none for c = 0. Tolerance: 1e-6 of the largest value.

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let first = group_index(group) * 256u;
  let end = min(first + 256u, params.elements);
  for (var e = first + lane; e < end; e += 64u) {
    var value = x[e] * params.factor;
    if (params.cap > 0.0) { value = params.cap * tanh_f32(value / params.cap); }
    x[e] = value;
  }
  if (lane == 0u && first < params.elements) { stamp(end - first); }
}
