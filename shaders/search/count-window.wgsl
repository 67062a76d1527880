// Where the keys k = bits(|τ|) of every block lie in relation to a window of keys [lo, hi]: counts[out + 5·block …] = number
// of k > hi; of k = hi; of k = lo; place in the list; number of lo < k < hi. The last are collected: list[base] counts them
// all (it begins at what it holds), and list[base + 1 + place …] are those of the block, in any order. What has no place
// below `room` is counted, not written. Keys are integers: exact whatever the order. lo ≤ hi; where they are equal, both
// counts are. Shapes: elements f32 at `slot` → 5 u32 a block, at most `room` u32 in the list.

var<workgroup> found: array<atomic<u32>, 4>;
var<workgroup> place: atomic<u32>;

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let block = group_index(group);
  let begin = min(block * 4096u, params.elements);
  let end = min(begin + 4096u, params.elements);
  var above = 0u;
  var highest = 0u;
  var lowest = 0u;
  var between = 0u;
  for (var e = begin + lane; e < end; e += 64u) {
    let key = values[params.slot + e] & 0x7fffffffu;
    above += select(0u, 1u, key > params.hi);
    highest += select(0u, 1u, key == params.hi);
    lowest += select(0u, 1u, key == params.lo);
    between += select(0u, 1u, key > params.lo && key < params.hi);
  }
  atomicAdd(&found[0], above);
  atomicAdd(&found[1], highest);
  atomicAdd(&found[2], lowest);
  atomicAdd(&found[3], between);
  workgroupBarrier();
  if (lane == 0u && begin < end) {
    let at = params.out + block * 5u;
    let n = atomicLoad(&found[3]);
    let first = atomicAdd(&list[params.base], n);
    counts[at] = atomicLoad(&found[0]);
    counts[at + 1u] = atomicLoad(&found[1]);
    counts[at + 2u] = atomicLoad(&found[2]);
    counts[at + 3u] = first;
    counts[at + 4u] = n;
    atomicStore(&place, first);
    stamp(end - begin);
  }
  workgroupBarrier();
  if (between == 0u) { return; }
  for (var e = begin + lane; e < end; e += 64u) {
    let key = values[params.slot + e] & 0x7fffffffu;
    if (key > params.lo && key < params.hi) {
      let at = atomicAdd(&place, 1u);
      if (at < params.room) { atomicStore(&list[params.base + 1u + at], key); }
    }
  }
}
