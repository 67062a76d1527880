// counts[slot] += the number of elements of x that are NaN or infinite, by their bits.
// Tolerance: 0.

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let first = group_index(group) * 1024u;
  let end = min(first + 1024u, params.elements);
  var bad = 0u;
  for (var e = first + lane; e < end; e += 64u) {
    if ((x[e] & 0x7f800000u) == 0x7f800000u) { bad++; }
  }
  if (bad > 0u) { atomicAdd(&counts[params.slot], bad); }
  if (lane == 0u && first < params.elements) { stamp(end - first); }
}
