// Trim in place: keeps τ inside the outer threshold and not inside the inner one, else 0. Inside a threshold are the
// elements with bits(|τ|) > key, and those equal to key up to a quota counted by flat index: blocks before `cut_block`
// have all their equal elements inside, block `cut_block` its first `cut_quota`, later blocks none (block numbers are
// the tensor's, the tile begins at block `first_block`). kept[out] += number kept.
// Top-k has an empty inner threshold, breadcrumbs drops with it what is largest. Exactly the elements asked for stay,
// whatever the tile size. Shapes: elements f32 at `slot`, in place.

var<workgroup> cuts: vec2<u32>; // equal elements before these indices are inside

fn cut_in(begin: u32, end: u32, number: u32, key: u32, cut_block: u32, cut_quota: u32) -> u32 {
  if (number != cut_block) { return select(begin, end, number < cut_block); }
  var cut = begin;
  var left = cut_quota;
  for (var e = begin; e < end && left > 0u; e++) {
    if ((values[params.slot + e] & 0x7fffffffu) == key) { left--; cut = e + 1u; }
  }
  return cut;
}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let block = group_index(group);
  let begin = min(block * 4096u, params.elements);
  let end = min(begin + 4096u, params.elements);
  let number = params.first_block + block;
  if (lane == 0u) {
    cuts = vec2<u32>(
      cut_in(begin, end, number, params.key, params.cut_block, params.cut_quota),
      cut_in(begin, end, number, params.inner_key, params.inner_cut_block, params.inner_cut_quota),
    );
  }
  workgroupBarrier();
  var n = 0u;
  for (var e = begin + lane; e < end; e += 64u) {
    let key = values[params.slot + e] & 0x7fffffffu;
    let outer = key > params.key || (key == params.key && e < cuts.x);
    let inner = key > params.inner_key || (key == params.inner_key && e < cuts.y);
    if (outer && !inner) {
      n++;
    } else {
      values[params.slot + e] = 0u;
    }
  }
  if (n > 0u) { atomicAdd(&kept[params.out], n); }
  if (lane == 0u && begin < end) { stamp(end - begin); }
}
