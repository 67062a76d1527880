// y[r, h] = Σ_j shares[r, h, j] · v[first + j, h / group] over the keys a row may see (attention-scores.wgsl).
// Shapes: shares [rows, heads, span], v [·, (heads / group) · 4·dim4], y [·, heads · 4·dim4]. All f32.
// One invocation makes four dimensions of one head. Tolerance: 1e-6 of the largest value.

struct Params {
  stamp: vec4<u32>,
  rows: u32,
  row_begin: u32,
  heads: u32,
  group: u32,
  dim4: u32,
  span: u32,
  window: u32,
}

@group(0) @binding(1) var<storage, read> shares: array<f32>;
@group(0) @binding(2) var<storage, read> v: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read> places: array<u32>;
@group(0) @binding(4) var<storage, read_write> y: array<vec4<f32>>;

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let all = params.rows * params.heads * params.dim4;
  let first_item = group_index(group) * 64u;
  if (lane == 0u && first_item < all) { stamp(min(64u, all - first_item)); }
  let item = first_item + lane;
  if (item >= all) { return; }
  let line = item / params.dim4;
  let i = item % params.dim4;
  let head = line % params.heads;
  let row = params.row_begin + line / params.heads;
  let position = places[2u * row + 1u];
  let count = min(position + 1u, params.window);
  let stride = (params.heads / params.group) * params.dim4;
  // the last `count` rows up to this one's own
  var value = (places[2u * row] + 1u - count) * stride + (head / params.group) * params.dim4 + i;
  var sum = vec4<f32>();
  for (var j = 0u; j < count; j++) {
    sum += shares[line * params.span + j] * v[value];
    value += stride;
  }
  y[(row * params.heads + head) * params.dim4 + i] = sum;
}
