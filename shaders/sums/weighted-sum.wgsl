// W = b·a + Σ c_i · (v_i − k·a), a = v_anchor, the sum over i ≠ anchor in order, terms with c_i = 0 left out, packed into the
// output dtype (lib/pack.wgsl); sums[block] = Σ (W − values)² over a block, slot 0 of values being the base.
// With b = 1, k = 1 it is an affine combination (Σ = 1) written so that equal inputs give their own bits; with k = 0 a
// plain weighted sum, or (b = 1) changes added to the base. A vanishing sum keeps the bits of b·a, and b = 1 those of a.
// Coefficients stand per group of elements: group of e = ⌊e / per⌋ mod groups (whole tile, rows or columns).
// Every difference, product and sum is one rounding: same bits on CPU and GPU.
// Shapes: count vectors of `elements` f32, `stride` apart, beginning at `slot` (multiples of 4) → packed words;
// sums ⌈elements/4096⌉ f32.
// coefficients: per group the bits of b, k, c_0 … c_{count − 1}; compared as integers, so that a NaN counts as neither 0 nor 1.

const ONE = vec4<u32>(0x3f800000u);

// Entry `at` of the tables of four elements.
fn entry(tables: vec4<u32>, at: u32) -> vec4<u32> {
  if (params.groups == 1u) { return vec4<u32>(coefficients[at]); }
  let i = tables + vec4<u32>(at);
  return vec4<u32>(coefficients[i.x], coefficients[i.y], coefficients[i.z], coefficients[i.w]);
}

fn is_zero(bits: vec4<u32>) -> vec4<bool> {
  return (bits & vec4<u32>(0x7fffffffu)) == vec4<u32>();
}

fn merged4(e: u32) -> vec4<u32> {
  var tables = vec4<u32>();
  if (params.groups > 1u) {
    tables = ((vec4<u32>(e, e + 1u, e + 2u, e + 3u) / params.per) % params.groups) * (params.count + 2u);
  }
  let first = (params.slot + e) / 4u;
  let a = values[first + params.anchor * params.stride / 4u];
  let affine = entry(tables, 1u) == ONE;
  var delta = vec4<f32>();
  for (var i = 0u; i < params.count; i++) {
    if (i == params.anchor) { continue; }
    let c = entry(tables, 2u + i);
    let v = values[first + i * params.stride / 4u];
    let x = select(v, change4(v, a), affine);
    delta = select(exact4(delta + exact4(x * bitcast<vec4<f32>>(c))), delta, is_zero(c));
  }
  // in integer registers while it is alone, so that −0 and NaN pass as they are
  let b = entry(tables, 0u);
  let scaled = select(bitcast<vec4<u32>>(exact4(a * bitcast<vec4<f32>>(b))), vec4<u32>(), is_zero(b));
  let start = select(scaled, bitcast<vec4<u32>>(a), b == ONE);
  return select(bitcast<vec4<u32>>(exact4(bitcast<vec4<f32>>(start) + delta)), start, delta == vec4<f32>());
}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let block = group_index(group) * PACK_BLOCKS + lane / 16u;
  let begin = min(block * 4096u, params.elements);
  let end = min(begin + 4096u, params.elements);
  var squares = vec4<f32>();
  var bad = 0u;
  for (var e = begin + lane % 16u * 4u; e < end; e += 64u) {
    let bits = merged4(e);
    squares = add_square(squares, exact4(bitcast<vec4<f32>>(bits) - values[e / 4u]), live4(e));
    bad += pack4(e, bits);
  }
  if (bad > 0u) { atomicAdd(&status[params.status], bad); }
  let change = block_sum(lane, squares);
  if (lane % 16u == 0u && begin < end) {
    sums[block] = change;
    stamp(end - begin);
  }
}
