// A linear layer's weight tile stored as f32: weight4(i) = elements 4i … 4i + 3, row after row.

fn weight4(i: u32) -> vec4<f32> {
  return weights[i];
}
