// Shared by both forms of the norm. kind 0: w · x / √(mean x² + ε); 1: the same with 1 + w; 2:
// LayerNorm, w · (x − mean) / √(variance + ε) + b.
// Group g of row r lies at x_begin + r · x_stride + g · group_stride of x and at r · y_stride + g · width of y; all groups of a
// row (its heads) share the weights. All sizes are given in fours.
// Shapes: x [rows, x_stride], weight and bias [width], y [rows, y_stride], f32.

fn x_at(index: u32) -> u32 {
  return params.x_begin4 + (index / params.groups) * params.x_stride4 + (index % params.groups) * params.group_stride4;
}

fn y_at(index: u32) -> u32 {
  return (index / params.groups) * params.y_stride4 + (index % params.groups) * params.width4;
}

fn normed(value: vec4<f32>, mean: f32, inverse: f32, i: u32) -> vec4<f32> {
  let shift = f32(params.kind & 1u);
  let scaled = (value - mean) * inverse * (weight[i] + shift);
  if (params.biased == 1u) { return scaled + bias[i]; }
  return scaled;
}

fn sum_of(v: vec4<f32>) -> f32 {
  return v.x + v.y + v.z + v.w;
}
