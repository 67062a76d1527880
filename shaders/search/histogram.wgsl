// Histogram of |τ| by its bit pattern, one digit of a radix select: bins[(key >> shift) & (bins − 1)] += 1 for every
// key whose higher bits equal `prefix`, key = bits(|τ|) (order-preserving for non-negative floats).
// Counts are integers: exact whatever the order. Shapes: elements f32 at `slot` → 8 copies of 2048 u32 at `out`, to be added
// up by the host; group g counts into copy g mod 8; bins ≤ 2048.

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  // Several copies share the traffic: many keys fall into few bins. Bins in workgroup memory would share it better, but
  // a software adapter spends a second on compiling their initialization.
  let begin = min(group_index(group) * 32768u, params.elements);
  let end = min(begin + 32768u, params.elements);
  let copy = params.out + (group_index(group) % 8u) * 2048u;
  for (var e = begin + lane; e < end; e += 64u) {
    let key = values[params.slot + e] & 0x7fffffffu;
    // prefix_shift is 31 for the first digit: every key matches prefix 0
    if ((key >> params.prefix_shift) == params.prefix) {
      atomicAdd(&bins[copy + ((key >> params.shift) & (params.bins - 1u))], 1u);
    }
  }
  if (lane == 0u && begin < end) { stamp(end - begin); }
}
