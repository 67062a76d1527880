// Norms of groups of `width` elements. kind 0: w · x / √(mean x² + ε); 1: the same with 1 + w; 2: LayerNorm,
// w · (x − mean) / √(variance + ε) + b.
// Group g of row r lies at x_begin + r · x_stride + g · group_stride of x and at r · y_stride + g · width of y; all groups
// of a row (its heads) share the weights.
// Shapes: x [rows, x_stride], weight and bias [width], y [rows, y_stride], f32.
// Tolerance: 1e-6 of the largest value.

struct Params {
  stamp: vec4<u32>,
  rows: u32,
  groups: u32,
  group_stride: u32,
  width: u32,
  x_begin: u32,
  x_stride: u32,
  y_stride: u32,
  kind: u32,
  biased: u32,
  epsilon: f32,
}

@group(0) @binding(1) var<storage, read> x: array<f32>;
@group(0) @binding(2) var<storage, read> weight: array<f32>;
@group(0) @binding(3) var<storage, read> bias: array<f32>;
@group(0) @binding(4) var<storage, read_write> y: array<f32>;

var<workgroup> partial: array<f32, 64>;

fn total(lane: u32, sum: f32) -> f32 {
  workgroupBarrier();
  partial[lane] = sum;
  workgroupBarrier();
  var all = 0.0;
  for (var l = 0u; l < 64u; l++) { all += partial[l]; }
  return all;
}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let index = group_index(group);
  let row = min(index / params.groups, params.rows - 1u);
  let part = index % params.groups;
  let from_x = params.x_begin + row * params.x_stride + part * params.group_stride;
  let to_y = row * params.y_stride + part * params.width;
  let n = f32(params.width);
  var mean = 0.0;
  if (params.kind == 2u) {
    var sum = 0.0;
    for (var i = lane; i < params.width; i += 64u) { sum += x[from_x + i]; }
    mean = total(lane, sum) / n;
  }
  var squares = 0.0;
  for (var i = lane; i < params.width; i += 64u) {
    let d = x[from_x + i] - mean;
    squares += d * d;
  }
  let inverse = 1.0 / sqrt(total(lane, squares) / n + params.epsilon);
  if (index >= params.rows * params.groups) { return; }
  let shift = select(0.0, 1.0, params.kind == 1u);
  for (var i = lane; i < params.width; i += 64u) {
    var value = (x[from_x + i] - mean) * inverse * (weight[i] + shift);
    if (params.biased == 1u) { value += bias[i]; }
    y[to_y + i] = value;
  }
  if (lane == 0u) { stamp(1u); }
}
