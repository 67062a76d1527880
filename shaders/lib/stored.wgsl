// Elements as they are stored: dtype codes of half.wgsl, two halves a word, low half first. Works on `raw` of the kernel's
// own file, in which a tensor's words begin anywhere.

// The f32 bits of elements e … e + 3 of the tensor that begins at `begin`, e being a multiple of 4. What lies behind its
// last element is not its own.
fn stored4(begin: u32, dtype: u32, e: u32) -> vec4<u32> {
  if (dtype == 0u) {
    let at = begin + e;
    return vec4<u32>(raw[at], raw[at + 1u], raw[at + 2u], raw[at + 3u]);
  }
  let low = raw[begin + e / 2u];
  let high = raw[begin + e / 2u + 1u];
  let halves = vec4<u32>(low & 0xffffu, low >> 16u, high & 0xffffu, high >> 16u);
  if (dtype == 2u) { return halves << vec4<u32>(16u); }
  return vec4<u32>(widen_f16(halves.x), widen_f16(halves.y), widen_f16(halves.z), widen_f16(halves.w));
}
