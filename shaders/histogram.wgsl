// Histogram of |τ| by its bit pattern, one digit of a radix select: bins[(key >> shift) & (bins − 1)] += 1 for every
// key whose higher bits equal `prefix`, key = bits(|τ|) (order-preserving for non-negative floats).
// Counts are integers: exact whatever the order. Shapes: elements f32 at `slot` → `bins` u32 at `out`; bins ≤ 2048.

struct Params {
  stamp: vec4<u32>,
  elements: u32,
  slot: u32,
  shift: u32,
  bins: u32,
  prefix_shift: u32,
  prefix: u32,
  out: u32,
}

@group(0) @binding(1) var<storage, read> values: array<u32>;
@group(0) @binding(2) var<storage, read_write> bins: array<atomic<u32>>;

var<workgroup> local_bins: array<atomic<u32>, 2048>;

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  // 8 blocks a group, so that clearing and flushing the local bins stays small beside the counting
  let begin = min(group_index(group) * 32768u, params.elements);
  let end = min(begin + 32768u, params.elements);
  for (var b = lane; b < params.bins; b += 64u) { atomicStore(&local_bins[b], 0u); }
  workgroupBarrier();
  for (var e = begin + lane; e < end; e += 64u) {
    let key = values[params.slot + e] & 0x7fffffffu;
    // prefix_shift is 31 for the first digit: every key matches prefix 0
    if ((key >> params.prefix_shift) == params.prefix) {
      atomicAdd(&local_bins[(key >> params.shift) & (params.bins - 1u)], 1u);
    }
  }
  workgroupBarrier();
  for (var b = lane; b < params.bins; b += 64u) {
    let n = atomicLoad(&local_bins[b]);
    if (n > 0u) { atomicAdd(&bins[params.out + b], n); }
  }
  if (lane == 0u && begin < end) { stamp(end - begin); }
}
