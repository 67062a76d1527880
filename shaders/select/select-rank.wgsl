// MagPrune in place (DELLA, Deep et al. 2024): the rank r of |τ| in its row sets the probability of being kept. Keeps
// τ[e] iff word e mod 4 of Philox4x32-10(counter ⌊e/4⌋, key) < below[r], e = flat index in the tensor, and multiplies
// what is kept by scale[r]. kept[out] += number kept. The host has put probabilities and scales into the table, so
// nothing is divided here. Shapes: elements f32 at `slot`, in place, whole rows of `cols`; ranks elements u32;
// `first` is a multiple of 4.
// table: below[0 … cols − 1] = ⌊q_r·2^32⌋, then scale[0 … cols − 1] as the bits of an f32.

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let begin = min(group_index(group) * 4096u, params.elements);
  let end = min(begin + 4096u, params.elements);
  var n = 0u;
  for (var e = begin + lane * 4u; e < end; e += 256u) {
    let words = philox(vec4<u32>((params.first + e) >> 2u, 0u, 0u, 0u), vec2<u32>(params.key0, params.key1));
    for (var i = 0u; i < 4u && e + i < end; i++) {
      let at = params.slot + e + i;
      let rank = ranks[e + i];
      if (words[i] < table[rank]) {
        n++;
        values[at] = exact(values[at] * bitcast<f32>(table[params.cols + rank]));
      } else {
        values[at] = 0.0;
      }
    }
  }
  if (n > 0u) { atomicAdd(&kept[params.out], n); }
  if (lane == 0u && begin < end) { stamp(end - begin); }
}
