// out = Σ c_i · v_i over `count` vectors, terms with c_i = 0 left out; c_i = 1 alone copies the bits.
// The sum runs in order, every product and sum one f32 rounding: same bits on CPU and GPU.
// Shapes: count vectors of `elements` f32, `stride` apart, beginning at `slot` → elements f32.

struct Params {
  stamp: vec4<u32>,
  elements: u32,
  slot: u32,
  stride: u32,
  count: u32,
}

@group(0) @binding(1) var<storage, read> values: array<f32>;
@group(0) @binding(2) var<storage, read> coefficients: array<f32>;
@group(0) @binding(3) var<storage, read_write> out: array<u32>;

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let begin = min(group_index(group) * 4096u, params.elements);
  let end = min(begin + 4096u, params.elements);
  for (var e = begin + lane; e < end; e += 64u) {
    // the first term starts the sum, so that −0 survives; it stays in integer registers while it is alone
    var bits = 0u;
    var empty = true;
    for (var i = 0u; i < params.count; i++) {
      let c = coefficients[i];
      if (c != 0.0) {
        let at = params.slot + i * params.stride + e;
        var term = bitcast<u32>(values[at]);
        if (c != 1.0) { term = bitcast<u32>(exact(values[at] * c)); }
        if (empty) {
          bits = term;
        } else {
          bits = bitcast<u32>(bitcast<f32>(bits) + bitcast<f32>(term));
        }
        empty = false;
      }
    }
    out[e] = bits;
  }
  if (lane == 0u && begin < end) { stamp(end - begin); }
}
