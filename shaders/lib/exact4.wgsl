// `exact` (stamp.wgsl) for four values at once.
fn exact4(x: vec4<f32>) -> vec4<f32> {
  let bits = bitcast<vec4<u32>>(x) ^ vec4<u32>(params.stamp.z);
  let zero = bits & vec4<u32>(0x80000000u);
  return bitcast<vec4<f32>>(select(zero, bits, (bits & vec4<u32>(0x7fffffffu)) > vec4<u32>(0x00800000u)));
}
