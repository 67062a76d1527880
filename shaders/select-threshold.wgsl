// Trim in place: keeps τ where bits(|τ|) > key, and where it equals key up to a quota counted by flat index; else 0.
// Blocks before `cut_block` keep every equal element, block `cut_block` its first `cut_quota`, later blocks none
// (block numbers are the tensor's, the tile begins at block `first_block`). kept[out] += number kept.
// Exactly k elements stay, whatever the tile size. Shapes: elements f32 at `slot`, in place.

struct Params {
  stamp: vec4<u32>,
  elements: u32,
  slot: u32,
  key: u32,
  first_block: u32,
  cut_block: u32,
  cut_quota: u32,
  out: u32,
}

@group(0) @binding(1) var<storage, read_write> values: array<u32>;
@group(0) @binding(2) var<storage, read_write> kept: array<atomic<u32>>;

var<workgroup> cut: u32;

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let block = group_index(group);
  let begin = min(block * 4096u, params.elements);
  let end = min(begin + 4096u, params.elements);
  let number = params.first_block + block;
  if (lane == 0u) {
    cut = select(begin, end, number < params.cut_block); // equal elements before this index stay
    if (number == params.cut_block) {
      var left = params.cut_quota;
      for (var e = begin; e < end && left > 0u; e++) {
        if ((values[params.slot + e] & 0x7fffffffu) == params.key) { left--; cut = e + 1u; }
      }
    }
  }
  workgroupBarrier();
  var n = 0u;
  for (var e = begin + lane; e < end; e += 64u) {
    let key = values[params.slot + e] & 0x7fffffffu;
    if (key > params.key || (key == params.key && e < cut)) {
      n++;
    } else {
      values[params.slot + e] = 0u;
    }
  }
  if (n > 0u) { atomicAdd(&kept[params.out], n); }
  if (lane == 0u && begin < end) { stamp(end - begin); }
}
