// A linear layer's weight tile stored as bf16, two a word: weight4(i) = elements 4i … 4i + 3, row after row.

fn weight4(i: u32) -> vec4<f32> {
  let p = weights[i];
  return bitcast<vec4<f32>>(vec4<u32>(p.x << 16u, p.x & 0xffff0000u, p.y << 16u, p.y & 0xffff0000u));
}
