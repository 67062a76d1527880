// y[r, i] = (add ? y : 0) + scale · table[ids[r], i]: rows of an embedding, widened on the way.
// The table may be cut into tiles of whole rows: a dispatch sees the rows first … first + count − 1 and leaves the
// others alone. Dtype codes as in lib/half.wgsl; two halves a word, low half first.
// Shapes: table [count, width] packed, ids [rows], y [rows, stride].
// Tolerance: 2e-7 of the largest value (product and sum may be fused).

fn element(e: u32) -> f32 {
  if (params.dtype == 0u) { return bitcast<f32>(table[e]); }
  let word = table[e >> 1u];
  let h = select(word & 0xffffu, word >> 16u, (e & 1u) == 1u);
  if (params.dtype == 2u) { return bitcast<f32>(h << 16u); }
  return bitcast<f32>(widen_f16(h));
}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let row = group_index(group);
  if (row >= params.rows) { return; }
  let id = ids[row];
  if (id >= params.first && id - params.first < params.count) {
    for (var i = lane; i < params.width; i += 64u) {
      let at = row * params.stride + i;
      var value = params.scale * element((id - params.first) * params.width + i);
      if (params.add == 1u) { value += y[at]; }
      y[at] = value;
    }
  }
  if (lane == 0u) { stamp(1u); }
}
