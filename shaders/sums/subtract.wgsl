// Task vector in place: values[slot + e] -= values[e] (τ = W − W₀), one f32 rounding; 0 where both have
// the same bits, so that an infinity that all have is no change.

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let begin = group_index(group) * 4096u;
  let end = min(begin + 4096u, params.elements);
  for (var e = begin + lane; e < end; e += 64u) {
    let own = values[params.slot + e];
    let change = bitcast<u32>(exact(bitcast<f32>(own) - bitcast<f32>(values[e])));
    values[params.slot + e] = select(change, 0u, own == values[e]);
  }
  if (lane == 0u && begin < end) { stamp(end - begin); }
}
