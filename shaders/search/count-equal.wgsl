// counts[out + block] = number of elements of the block whose |τ| has exactly the bit pattern `key`.
// Breaks ties at a threshold by lowest flat index: the host finds the block in which the quota runs out.
// Shapes: elements f32 at `slot` → ⌈elements/4096⌉ u32.

var<workgroup> total: atomic<u32>;

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let block = group_index(group);
  let begin = min(block * 4096u, params.elements);
  let end = min(begin + 4096u, params.elements);
  var n = 0u;
  for (var e = begin + lane; e < end; e += 64u) {
    if ((values[params.slot + e] & 0x7fffffffu) == params.key) { n++; }
  }
  atomicAdd(&total, n);
  workgroupBarrier();
  if (lane == 0u && begin < end) {
    counts[params.out + block] = atomicLoad(&total);
    stamp(end - begin);
  }
}
