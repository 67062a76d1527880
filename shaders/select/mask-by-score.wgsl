// Applies one selection to all task vectors, in place: τ_i[e] = 0 where the trimmed score of e is 0.
// Shapes: score elements f32; values (models + 1)·stride f32, slots 1 … models changed.

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let begin = min(group_index(group) * 4096u, params.elements);
  let end = min(begin + 4096u, params.elements);
  for (var e = begin + lane; e < end; e += 64u) {
    if (score[e] == 0u) {
      for (var i = 1u; i <= params.models; i++) { values[i * params.stride + e] = 0u; }
    }
  }
  if (lane == 0u && begin < end) { stamp(end - begin); }
}
