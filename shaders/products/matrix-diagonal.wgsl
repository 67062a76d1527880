// diagonal[j] = m[j, j]. Tolerance: 0. Shapes: m [width, width] f32; diagonal [width] f32.

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let first = group_index(group) * 64u;
  if (lane == 0u && first < params.width) { stamp(min(64u, params.width - first)); }
  let j = first + lane;
  if (j < params.width) { diagonal[params.out + j] = m[j * (params.width + 1u)]; }
}
