// `flush` and `exact` (stamp.wgsl) for four values at once.

fn flush4(bits: vec4<u32>) -> vec4<u32> {
  let zero = bits & vec4<u32>(0x80000000u);
  return select(zero, bits, (bits & vec4<u32>(0x7fffffffu)) > vec4<u32>(0x00800000u));
}

fn exact4(x: vec4<f32>) -> vec4<f32> {
  return bitcast<vec4<f32>>(flush4(bitcast<vec4<u32>>(x) ^ vec4<u32>(params.stamp.z)));
}

// v − a, and 0 where both have the same bits: an infinity that all have is no change.
fn change4(v: vec4<f32>, a: vec4<f32>) -> vec4<f32> {
  return select(exact4(v - a), vec4<f32>(), bitcast<vec4<u32>>(v) == bitcast<vec4<u32>>(a));
}
