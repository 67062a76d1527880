// The end of a tile for kernels that make merged values: four consecutive elements an invocation, sixteen invocations a
// block of 4096, four blocks a workgroup. Values are rounded once to the output dtype, to nearest even, by integer code
// (half.wgsl), and results that are not finite are counted in status[params.status]. Works on `packed`, `status`,
// `params.elements` and `params.dtype` of the kernel's own file.
// Shapes: elements f32 → ⌈elements/2⌉ or elements words; the rest of the last word is zero.

const PACK_BLOCKS = 4u;

var<workgroup> partial: array<f32, 256>;

// Which of elements e … e + 3 there are.
fn live4(e: u32) -> vec4<bool> {
  return vec4<u32>(e, e + 1u, e + 2u, e + 3u) < vec4<u32>(params.elements);
}

fn narrow(bits: u32) -> u32 {
  if (params.dtype == 2u) { return narrow_bf16(bits); }
  return narrow_f16(bits);
}

// Four values in the output dtype, with one NaN for all: which NaN an operation makes differs between devices.
fn rounded4(value: vec4<u32>) -> vec4<u32> {
  let one = select(value, vec4<u32>(0x7fc00000u), (value & vec4<u32>(0x7fffffffu)) > vec4<u32>(0x7f800000u));
  if (params.dtype == 0u) { return one; }
  return vec4<u32>(narrow(one.x), narrow(one.y), narrow(one.z), narrow(one.w));
}

// Stores elements e … e + 3, e being a multiple of 4, and returns how many of them are not finite. f16 overflow makes an
// infinity out of a finite value, so the test is on the rounded result.
fn pack4(e: u32, value: vec4<u32>) -> u32 {
  return store4(e, rounded4(value));
}

// The same for values that are rounded already.
fn store4(e: u32, rounded: vec4<u32>) -> u32 {
  let stored = select(vec4<u32>(), rounded, live4(e));
  var special = 0x7f800000u;
  if (params.dtype != 0u) {
    special = select(0x7c00u, 0x7f80u, params.dtype == 2u);
    packed[e / 2u] = stored.x | (stored.y << 16u);
    if (e + 2u < params.elements) { packed[e / 2u + 1u] = stored.z | (stored.w << 16u); }
  } else {
    packed[e] = stored.x;
    for (var i = 1u; i < 4u && e + i < params.elements; i++) { packed[e + i] = stored[i]; }
  }
  return ones((stored & vec4<u32>(special)) == vec4<u32>(special));
}

fn ones(which: vec4<bool>) -> u32 {
  let n = select(vec4<u32>(), vec4<u32>(1u), which);
  return n.x + n.y + n.z + n.w;
}

// sum + x², and sum where there is no element.
fn add_square(sum: vec4<f32>, x: vec4<f32>, live: vec4<bool>) -> vec4<f32> {
  return select(sum, exact4(sum + exact4(x * x)), live);
}

// The sum over a block of what its invocations have: invocation t the sums of lanes 4t … 4t + 3 of docs/numbers.md. The
// lanes are added in order; valid in the block's first invocation.
fn block_sum(lane: u32, sums: vec4<f32>) -> f32 {
  partial[4u * lane] = sums.x;
  partial[4u * lane + 1u] = sums.y;
  partial[4u * lane + 2u] = sums.z;
  partial[4u * lane + 3u] = sums.w;
  workgroupBarrier();
  var total = 0.0;
  if (lane % 16u == 0u) {
    for (var l = 0u; l < 64u; l++) { total = exact(total + partial[4u * lane + l]); }
  }
  return total;
}
