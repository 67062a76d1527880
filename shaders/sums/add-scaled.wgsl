// y += scale · x, element by element. f32.
// Tolerance: 2e-7 of the largest value (product and sum may be fused).

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let first = group_index(group) * 256u;
  let end = min(first + 256u, params.elements);
  for (var e = first + lane; e < end; e += 64u) { y[e] += params.scale * x[e]; }
  if (lane == 0u && first < params.elements) { stamp(end - first); }
}
