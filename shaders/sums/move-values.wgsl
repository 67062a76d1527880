// y[to + e] = x[from + e]: words moved from one buffer to another. Shapes: elements words each. No arithmetic.

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let begin = min(group_index(group) * 4096u, params.elements);
  let end = min(begin + 4096u, params.elements);
  for (var e = begin + lane; e < end; e += 64u) { y[params.to_word + e] = x[params.from_word + e]; }
  if (lane == 0u && begin < end) { stamp(end - begin); }
}
