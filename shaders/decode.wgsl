// The stored words of a tile, all its tensors in one pass, to what a method computes with: slot i of values = f32 of tensor i,
// or its change to tensor 0 (one rounding), or zeros; counts what is not finite in status[i].
// inputs: two words a slot, where its words begin in raw (two halves a word, low half first) and dtype + 4·form: dtype codes in
// half.wgsl; form 0 = leave the slot alone, 1 = zeros, 2 = the tensor, 3 = the tensor minus tensor 0.
// Shapes: per tensor ⌈elements/2⌉ or elements words → slots of `elements` f32, `stride` (a multiple of 4) apart.
// Exact but for subnormals, which become zeros.

struct Params {
  stamp: vec4<u32>,
  elements: u32,
  stride: u32,
  slots: u32,
}

@group(0) @binding(1) var<storage, read> raw: array<u32>;
@group(0) @binding(2) var<storage, read> inputs: array<vec2<u32>>;
@group(0) @binding(3) var<storage, read_write> values: array<vec4<u32>>;
@group(0) @binding(4) var<storage, read_write> status: array<atomic<u32>>;

// Which of elements e … e + 3 there are.
fn live4(e: u32) -> vec4<bool> {
  return vec4<u32>(e, e + 1u, e + 2u, e + 3u) < vec4<u32>(params.elements);
}

// Elements e … e + 3 of words that begin at `begin`, e being a multiple of 4. What lies past the last is of no account.
fn stored4(begin: u32, dtype: u32, e: u32) -> vec4<u32> {
  if (dtype == 0u) {
    let at = begin + e;
    return vec4<u32>(raw[at], raw[at + 1u], raw[at + 2u], raw[at + 3u]);
  }
  let low = raw[begin + e / 2u];
  let high = raw[begin + e / 2u + 1u];
  if (dtype == 2u) { return vec4<u32>(low << 16u, low & 0xffff0000u, high << 16u, high & 0xffff0000u); }
  return vec4<u32>(
    widen_f16(low & 0xffffu),
    widen_f16(low >> 16u),
    widen_f16(high & 0xffffu),
    widen_f16(high >> 16u),
  );
}

fn flush4(bits: vec4<u32>) -> vec4<u32> {
  let zero = bits & vec4<u32>(0x80000000u);
  return select(zero, bits, (bits & vec4<u32>(0x7fffffffu)) > vec4<u32>(0x00800000u));
}

// How many of elements e … e + 3 are not finite.
fn not_finite(e: u32, bits: vec4<u32>) -> u32 {
  let exponent = vec4<u32>(0x7f800000u);
  let bad = select(vec4<u32>(), vec4<u32>(1u), live4(e) & ((bits & exponent) == exponent));
  return bad.x + bad.y + bad.z + bad.w;
}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let begin = group_index(group) * 4096u;
  let end = min(begin + 4096u, params.elements);
  for (var slot = 0u; slot < params.slots; slot++) {
    let input = inputs[slot];
    let form = input.y / 4u;
    if (form == 0u) { continue; }
    let out = slot * params.stride;
    var bad = 0u;
    for (var e = begin + 4u * lane; e < end; e += 256u) {
      var bits = vec4<u32>();
      if (form > 1u) {
        bits = stored4(input.x, input.y % 4u, e);
        bad += not_finite(e, bits);
        bits = flush4(bits);
      }
      // slot 0 was written by this invocation
      if (form == 3u) {
        bits = bitcast<vec4<u32>>(exact4(bitcast<vec4<f32>>(bits) - bitcast<vec4<f32>>(values[e / 4u])));
      }
      let quad = (out + e) / 4u;
      if (e + 4u > end) { bits = select(values[quad], bits, live4(e)); }
      values[quad] = bits;
    }
    if (bad > 0u) { atomicAdd(&status[slot], bad); }
  }
  if (lane == 0u && begin < end) { stamp(end - begin); }
}
