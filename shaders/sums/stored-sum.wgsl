// W = b·a + Σ c_i · (v_i − k·a), the sum of weighted-sum.wgsl for one group, from the stored words of a tile to packed words
// in one pass, with all that is measured on the way: no value lies in memory as f32.
// v_0 is the base and v_1 … the contributors, VECTORS of them; FIRST = 1 where there is no base, which then is 0. Both are
// constants (src/backend/kernels/sums.ts), so that every v_i and every sum has a register.
// inputs: as in decode.wgsl. sums, PAIRS + 2 words a block: Σ v_i · v_j of the pairs i ≤ j in row order, 0 with a base that
// is missing; Σ (W − v_0)²; the number of elements whose packed value is v_0 rounded alike (+0 and −0 are the same), u32.
// status[i] += values of v_i that are not finite, status[params.status] += results.
// Shapes: per tensor ⌈elements/2⌉ or elements words → packed words. Same bits as decode, inner-products, weighted-sum and
// merge-counts one after another.
// coefficients: the bits of b, k, c_1 …

const PAIRS = VECTORS * (VECTORS + 1u) / 2u;
// pairs with a base that is missing; the others and the change are added up
const NONE = FIRST * VECTORS;
const SUMS = PAIRS - NONE + 1u;
const ONE = 0x3f800000u;

// sum k of lane l of the four blocks: 256 · k + 64 · block + l
var<workgroup> lanes: array<f32, 256u * SUMS>;
var<workgroup> unchanged: array<atomic<u32>, PACK_BLOCKS>;

fn is_zero(bits: u32) -> bool {
  return (bits & 0x7fffffffu) == 0u;
}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let own = lane / 16u;
  let block = group_index(group) * PACK_BLOCKS + own;
  let begin = min(block * 4096u, params.elements);
  let end = min(begin + 4096u, params.elements);
  // tables are read once, not for every element
  let b = coefficients[0];
  let affine = coefficients[1] == ONE;
  var c = array<u32, VECTORS>();
  for (var i = 1u; i < VECTORS; i++) { c[i] = coefficients[1u + i]; }
  var input = array<vec2<u32>, VECTORS>();
  for (var i = FIRST; i < VECTORS; i++) { input[i] = vec2<u32>(inputs[i].x, inputs[i].y % 4u); }
  var v = array<vec4<f32>, VECTORS>();
  var sum = array<vec4<f32>, SUMS>();
  var bad = array<u32, VECTORS>();
  var wrong = 0u;
  var same = 0u;
  for (var e = begin + lane % 16u * 4u; e < end; e += 64u) {
    let live = live4(e);
    for (var i = FIRST; i < VECTORS; i++) {
      let bits = stored4(input[i].x, input[i].y, e);
      bad[i] += ones(live & ((bits & vec4<u32>(0x7f800000u)) == vec4<u32>(0x7f800000u)));
      v[i] = bitcast<vec4<f32>>(flush4(bits));
    }
    var k = 0u;
    for (var i = FIRST; i < VECTORS; i++) {
      for (var j = i; j < VECTORS; j++) {
        sum[k] = select(sum[k], exact4(sum[k] + exact4(v[i] * v[j])), live);
        k++;
      }
    }
    var a = v[1];
    for (var i = 2u; i < VECTORS; i++) { a = select(a, v[i], params.anchor + 1u == i); }
    var delta = vec4<f32>();
    for (var i = 1u; i < VECTORS; i++) {
      if (i == params.anchor + 1u || is_zero(c[i])) { continue; }
      let x = select(v[i], change4(v[i], a), affine);
      delta = exact4(delta + exact4(x * bitcast<f32>(c[i])));
    }
    // in integer registers while it is alone, so that −0 and NaN pass as they are
    var start = vec4<u32>();
    if (!is_zero(b)) { start = select(bitcast<vec4<u32>>(exact4(a * bitcast<f32>(b))), bitcast<vec4<u32>>(a), b == ONE); }
    let moved = bitcast<vec4<u32>>(exact4(bitcast<vec4<f32>>(start) + delta));
    let bits = select(moved, start, delta == vec4<f32>());
    sum[SUMS - 1u] = add_square(sum[SUMS - 1u], exact4(bitcast<vec4<f32>>(bits) - v[0]), live);
    let rounded = rounded4(bits);
    let base = rounded4(bitcast<vec4<u32>>(v[0]));
    let magnitude = vec4<u32>(select(0x7fffu, 0x7fffffffu, params.dtype == 0u));
    same += ones(live & ((rounded == base) | (((rounded | base) & magnitude) == vec4<u32>())));
    wrong += store4(e, rounded);
  }
  for (var i = FIRST; i < VECTORS; i++) {
    if (bad[i] > 0u) { atomicAdd(&status[i], bad[i]); }
  }
  if (wrong > 0u) { atomicAdd(&status[params.status], wrong); }
  if (same > 0u) { atomicAdd(&unchanged[own], same); }
  for (var k = 0u; k < SUMS; k++) {
    for (var l = 0u; l < 4u; l++) { lanes[256u * k + 4u * lane + l] = sum[k][l]; }
  }
  workgroupBarrier();
  if (begin >= end) { return; }
  // the lanes of a block are added in order, each sum by another invocation
  let out = block * (PAIRS + 2u);
  for (var k = lane % 16u; k < NONE; k += 16u) { sums[out + k] = 0u; }
  for (var k = lane % 16u; k < SUMS; k += 16u) {
    var total = 0.0;
    for (var l = 0u; l < 64u; l++) { total = exact(total + lanes[256u * k + 64u * own + l]); }
    sums[out + NONE + k] = bitcast<u32>(total);
  }
  if (lane % 16u == 0u) {
    sums[out + PAIRS + 1u] = atomicLoad(&unchanged[own]);
    stamp(end - begin);
  }
}
