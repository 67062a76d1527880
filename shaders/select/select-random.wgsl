// DARE dropout in place (Yu et al. 2023): keeps τ[e] iff word e mod 4 of Philox4x32-10(counter ⌊e/4⌋, key) < `below`,
// below = ⌊ρ·2^32⌋, e = flat index in the tensor. kept[out] += number kept.
// Depends on nothing but (key, e): same mask for any tile, order or device. Shapes: elements f32 at `slot`, in place;
// `first` is a multiple of 4.

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let begin = min(group_index(group) * 4096u, params.elements);
  let end = min(begin + 4096u, params.elements);
  var n = 0u;
  for (var e = begin + lane * 4u; e < end; e += 256u) {
    let words = philox(vec4<u32>((params.first + e) >> 2u, 0u, 0u, 0u), vec2<u32>(params.key0, params.key1));
    for (var i = 0u; i < 4u && e + i < end; i++) {
      if (words[i] < params.below) {
        n++;
      } else {
        values[params.slot + e + i] = 0u;
      }
    }
  }
  if (n > 0u) { atomicAdd(&kept[params.out], n); }
  if (lane == 0u && begin < end) { stamp(end - begin); }
}
