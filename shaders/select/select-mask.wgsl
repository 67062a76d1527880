// Trim in place by a mask: τ[e] stays where bit e of the mask is set (words from the lowest bit up), else 0.
// Shapes: mask ⌈elements / 32⌉ words from word `first`; elements f32 at `slot`, in place. No arithmetic: what stays keeps its bits.

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let begin = min(group_index(group) * 4096u, params.elements);
  let end = min(begin + 4096u, params.elements);
  for (var e = begin + lane; e < end; e += 64u) {
    if (((mask[params.first + e / 32u] >> (e % 32u)) & 1u) == 0u) { values[params.slot + e] = 0u; }
  }
  if (lane == 0u && begin < end) { stamp(end - begin); }
}
