// out = b·a + Σ c_i · (v_i − k·a), a = v_anchor, the sum over i ≠ anchor in order, terms with c_i = 0 left out.
// With b = 1, k = 1 it is an affine combination (Σ = 1) written so that equal inputs give their own bits; with k = 0 a
// plain weighted sum, or (b = 1) changes added to the base. A vanishing sum keeps the bits of b·a, and b = 1 those of a.
// Coefficients stand per group of elements: group of e = ⌊e / per⌋ mod groups (whole tile, rows or columns).
// Every difference, product and sum is one rounding: same bits on CPU and GPU.
// Shapes: count vectors of `elements` f32, `stride` apart, beginning at `slot` → elements f32.

struct Params {
  stamp: vec4<u32>,
  elements: u32,
  slot: u32,
  stride: u32,
  count: u32,
  anchor: u32,
  per: u32,
  groups: u32,
}

@group(0) @binding(1) var<storage, read> values: array<f32>;
// per group the bits of b, k, c_0 … c_{count − 1}; compared as integers, so that a NaN counts as neither 0 nor 1
@group(0) @binding(2) var<storage, read> coefficients: array<u32>;
@group(0) @binding(3) var<storage, read_write> out: array<u32>;

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let begin = min(group_index(group) * 4096u, params.elements);
  let end = min(begin + 4096u, params.elements);
  for (var e = begin + lane; e < end; e += 64u) {
    let table = ((e / params.per) % params.groups) * (params.count + 2u);
    let b = coefficients[table];
    let affine = coefficients[table + 1u] == 0x3f800000u;
    let a = values[params.slot + params.anchor * params.stride + e];
    var delta = 0.0;
    for (var i = 0u; i < params.count; i++) {
      let c = coefficients[table + 2u + i];
      if (i != params.anchor && (c & 0x7fffffffu) != 0u) {
        var v = values[params.slot + i * params.stride + e];
        if (affine) { v = exact(v - a); }
        delta = exact(delta + exact(v * bitcast<f32>(c)));
      }
    }
    // in integer registers while it is alone, so that −0 and NaN pass as they are
    var start = 0u;
    if (b == 0x3f800000u) {
      start = bitcast<u32>(a);
    } else if ((b & 0x7fffffffu) != 0u) {
      start = bitcast<u32>(exact(a * bitcast<f32>(b)));
    }
    out[e] = select(bitcast<u32>(exact(bitcast<f32>(start) + delta)), start, delta == 0.0);
  }
  if (lane == 0u && begin < end) { stamp(end - begin); }
}
