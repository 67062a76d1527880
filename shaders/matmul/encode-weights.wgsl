// Stored rows as weights of eight bits (lib/weight-q8.wgsl), from row `first` on, bit for bit as Q8_0 has them: of each block of 32
// the scale d = max|x| / 127, kept as the f16 next to it, and x/d rounded half away from zero. A value that is not finite becomes a
// scale that no sum survives.
// Shapes: raw [outputs, inputs] packed (lib/stored.wgsl), weights [·, 9 · inputs/32].

// a / b of positive normal numbers to nearest even, by long division: a device's own may be a few bits off.
fn quotient(a: u32, b: u32) -> u32 {
  let below = (b & 0x7fffffu) | 0x800000u;
  var rest = (a & 0x7fffffu) | 0x800000u;
  var exponent = 127u + (a >> 23u) - (b >> 23u);
  if (rest < below) {
    rest <<= 1u;
    exponent--;
  }
  var digits = 0u;
  for (var i = 0u; i < 24u; i++) {
    let digit = u32(rest >= below);
    digits = (digits << 1u) | digit;
    rest = (rest - digit * below) << 1u;
  }
  digits += u32(rest > below || (rest == below && (digits & 1u) == 1u));
  return (exponent << 23u) + digits - 0x800000u;
}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let of_row = params.inputs / 32u;
  let blocks = params.outputs * of_row;
  let first_block = group_index(group) * 64u;
  if (lane == 0u && first_block < blocks) { stamp(min(64u, blocks - first_block)); }
  let block = first_block + lane;
  if (block >= blocks) { return; }
  var largest = 0u;
  for (var i = 0u; i < 8u; i++) {
    let sizes = stored4(0u, params.dtype, block * 32u + i * 4u) & vec4<u32>(0x7fffffffu);
    largest = max(largest, max(max(sizes.x, sizes.y), max(sizes.z, sizes.w)));
  }
  var d = 0u;
  var inverse = 0.0;
  // below 2^-100 the scale is zero as f16, and so is the block
  if (largest >= 0x0d800000u && largest < 0x7f800000u) {
    d = quotient(largest, bitcast<u32>(127.0));
    inverse = bitcast<f32>(quotient(bitcast<u32>(1.0), d));
  }
  let out = (params.first * of_row + block) * 9u;
  for (var i = 0u; i < 8u; i++) {
    let stored = bitcast<vec4<f32>>(stored4(0u, params.dtype, block * 32u + i * 4u));
    let scaled = exact4(stored * inverse);
    let whole = trunc(scaled);
    let away = select(vec4<f32>(), sign(scaled), abs(scaled - whole) >= vec4<f32>(0.5));
    let q = bitcast<vec4<u32>>(vec4<i32>(whole + away)) & vec4<u32>(255u);
    weights[out + i] = q.x | (q.y << 8u) | (q.z << 16u) | (q.w << 24u);
  }
  weights[out + 8u] = select(widen_f16(narrow_f16(d)), 0x7fc00000u, largest >= 0x7f800000u);
}
