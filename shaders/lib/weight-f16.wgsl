// A linear layer's weight tile stored as f16, two a word: weight4(i) = elements 4i … 4i + 3, row after row.
// Subnormal halves may come out as zero; below 6e-5 they cannot be seen in a sum.

fn weight4(i: u32) -> vec4<f32> {
  let p = weights[i];
  return vec4<f32>(unpack2x16float(p.x), unpack2x16float(p.y));
}
