// A linear layer's weight tile at eight bits, in blocks of nine words: 32 signed bytes and their scale as f32:
// weight4(i) = elements 4i … 4i + 3, row after row.

fn weight4(i: u32) -> vec4<f32> {
  let at = i / 8u * 9u;
  let bytes = vec4<i32>(bitcast<i32>(weights[at + i % 8u])) << vec4<u32>(24u, 16u, 8u, 0u);
  return vec4<f32>(bytes >> vec4<u32>(24u)) * bitcast<f32>(weights[at + 8u]);
}
