// Packs merged values into the output dtype (lib/pack.wgsl) and measures the change on the way: sums[block] =
// Σ_{e in block} (merged[e] − values[e])², slot 0 of values being the base, in the order of docs/numbers.md.
// Shapes: values and merged elements f32 each → packed words; sums ⌈elements/4096⌉ f32, which the host adds in f64.

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let block = group_index(group) * PACK_BLOCKS + lane / 16u;
  let begin = min(block * 4096u, params.elements);
  let end = min(begin + 4096u, params.elements);
  var squares = vec4<f32>();
  var bad = 0u;
  for (var e = begin + lane % 16u * 4u; e < end; e += 64u) {
    let bits = merged[e / 4u];
    squares = add_square(squares, exact4(bitcast<vec4<f32>>(bits) - values[e / 4u]), live4(e));
    bad += pack4(e, bits);
  }
  if (bad > 0u) { atomicAdd(&status[params.status], bad); }
  let change = block_sum(lane, squares);
  if (lane % 16u == 0u && begin < end) {
    sums[block] = change;
    stamp(end - begin);
  }
}
