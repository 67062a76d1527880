// Packs f32 values into the output dtype, rounding once to nearest even; counts results that are not finite.
// One invocation handles whole words (two halves, low half first), so no word is written twice.
// Shapes: elements f32 at `values_begin` → ⌈elements/2⌉ or elements words. Exact round-to-nearest-even by integer code.

struct Params {
  stamp: vec4<u32>,
  elements: u32,
  dtype: u32,
  values_begin: u32,
  status: u32,
}

@group(0) @binding(1) var<storage, read> values: array<u32>;
@group(0) @binding(2) var<storage, read_write> packed: array<u32>;
@group(0) @binding(3) var<storage, read_write> status: array<atomic<u32>>;

// One NaN for all: which NaN an operation makes differs between devices.
fn value(e: u32) -> u32 {
  let bits = values[params.values_begin + e];
  return select(bits, 0x7fc00000u, (bits & 0x7fffffffu) > 0x7f800000u);
}

fn narrow(bits: u32) -> u32 {
  if (params.dtype == 2u) { return narrow_bf16(bits); }
  return narrow_f16(bits);
}

// f16 overflow makes an infinity out of a finite value, so the test is on the rounded result.
fn is_bad(h: u32) -> u32 {
  let special = select(0x7c00u, 0x7f80u, params.dtype == 2u);
  return select(0u, 1u, (h & special) == special);
}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let begin = group_index(group) * 4096u;
  let end = min(begin + 4096u, params.elements);
  var bad = 0u;
  if (params.dtype == 0u) {
    for (var e = begin + lane; e < end; e += 64u) {
      let bits = value(e);
      if (!is_finite(bits)) { bad++; }
      packed[e] = bits;
    }
  } else {
    for (var e = begin + lane * 2u; e < end; e += 128u) {
      let low = narrow(value(e));
      var high = 0u;
      bad += is_bad(low);
      if (e + 1u < end) {
        high = narrow(value(e + 1u));
        bad += is_bad(high);
      }
      packed[e >> 1u] = low | (high << 16u);
    }
  }
  if (bad > 0u) { atomicAdd(&status[params.status], bad); }
  if (lane == 0u && begin < end) { stamp(end - begin); }
}
