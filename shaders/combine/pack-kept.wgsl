// Bit e of the mask is set where element e is not 0: the elements kept (words from the lowest bit up; +0 and −0 are the
// same). Shapes: elements f32 at `slot` → ⌈elements / 32⌉ words from word `first` of the mask. Integers only.

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let begin = min(group_index(group) * 4096u, params.elements);
  let end = min(begin + 4096u, params.elements);
  for (var word = begin / 32u + lane; word * 32u < end; word += 64u) {
    var bits = 0u;
    for (var e = word * 32u; e < min(word * 32u + 32u, end); e++) {
      if ((values[params.slot + e] & 0x7fffffffu) != 0u) { bits |= 1u << (e % 32u); }
    }
    mask[params.first + word] = bits;
  }
  if (lane == 0u && begin < end) { stamp(end - begin); }
}
