// The stored words of a tile, all its tensors in one pass, to the values a method computes with: slot i of values = f32 of tensor i,
// or its change to tensor 0 (one rounding, subtract.wgsl); counts non-finite values in status[i].
// inputs: two words a slot, where its words begin in raw (two halves a word, low half first) and dtype + 4·form: dtype codes in
// half.wgsl; form 0 = leave the slot alone, 1 = the tensor, 2 = the tensor minus tensor 0.
// Shapes: per tensor ⌈elements/2⌉ or elements words → slots of `elements` f32, `stride` apart.
// Exact but for subnormals, which become zeros.

fn element_bits(begin: u32, dtype: u32, e: u32) -> u32 {
  if (dtype == 0u) { return raw[begin + e]; }
  let word = raw[begin + (e >> 1u)];
  let h = select(word & 0xffffu, word >> 16u, (e & 1u) == 1u);
  if (dtype == 2u) { return h << 16u; }
  return widen_f16(h);
}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let begin = group_index(group) * 4096u;
  let end = min(begin + 4096u, params.elements);
  for (var slot = 0u; slot < params.slots; slot++) {
    let input = inputs[slot];
    let dtype = input.y % 4u;
    let form = input.y / 4u;
    if (form == 0u) { continue; }
    let out = slot * params.stride;
    var bad = 0u;
    for (var e = begin + lane; e < end; e += 64u) {
      let bits = element_bits(input.x, dtype, e);
      if (!is_finite(bits)) { bad++; }
      var value = flush(bits);
      // slot 0 was written by this invocation
      if (form == 2u) {
        let base = values[e];
        value = select(bitcast<u32>(exact(bitcast<f32>(value) - bitcast<f32>(base))), 0u, value == base);
      }
      values[out + e] = value;
    }
    if (bad > 0u) { atomicAdd(&status[slot], bad); }
  }
  if (lane == 0u && begin < end) { stamp(end - begin); }
}
