// values[out + e] = f32 of element e of a packed tensor; counts what is not finite.
// raw: u32 words as stored (two halves a word, low half first), beginning at word `raw_begin`; dtype codes in half.wgsl.
// Shapes: raw ⌈elements/2⌉ or elements words → elements f32. Exact but for subnormals, which become zeros.

struct Params {
  stamp: vec4<u32>,
  elements: u32,
  dtype: u32,
  raw_begin: u32,
  out: u32,
  status: u32,
}

@group(0) @binding(1) var<storage, read> raw: array<u32>;
@group(0) @binding(2) var<storage, read_write> values: array<u32>;
@group(0) @binding(3) var<storage, read_write> status: array<atomic<u32>>;

fn element_bits(e: u32) -> u32 {
  if (params.dtype == 0u) { return raw[params.raw_begin + e]; }
  let word = raw[params.raw_begin + (e >> 1u)];
  let h = select(word & 0xffffu, word >> 16u, (e & 1u) == 1u);
  if (params.dtype == 2u) { return h << 16u; }
  return widen_f16(h);
}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let begin = group_index(group) * 4096u;
  let end = min(begin + 4096u, params.elements);
  var bad = 0u;
  for (var e = begin + lane; e < end; e += 64u) {
    let bits = element_bits(e);
    if (!is_finite(bits)) { bad++; }
    values[params.out + e] = flush(bits);
  }
  if (bad > 0u) { atomicAdd(&status[params.status], bad); }
  if (lane == 0u && begin < end) { stamp(end - begin); }
}
