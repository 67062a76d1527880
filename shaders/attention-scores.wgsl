// scores[r, h, j] = cap(scale · q[r, h] · k[first + j, h / group]) + slope[h] · (first + j) for the keys a row may see:
// first = max(0, position + 1 − window) … position. cap(x) = c · tanh(x / c), none for c = 0.
// Row r of the dispatch is row row_begin + r of q and places; its keys begin at row places[2r] − position of k.
// Shapes: q [·, heads · 4·dim4], k [·, (heads / group) · 4·dim4], slopes [heads], scores [rows, heads, span]. All f32.
// One invocation makes four scores. Tolerance: 1e-6 of the largest value.

struct Params {
  stamp: vec4<u32>,
  rows: u32,
  row_begin: u32,
  heads: u32,
  group: u32,
  dim4: u32,
  span: u32,
  window: u32,
  sloped: u32,
  scale: f32,
  cap: f32,
}

@group(0) @binding(1) var<storage, read> q: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> k: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read> places: array<u32>;
@group(0) @binding(4) var<storage, read> slopes: array<f32>;
@group(0) @binding(5) var<storage, read_write> scores: array<f32>;

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let quads = (params.span + 3u) / 4u;
  let all = params.rows * params.heads * quads;
  let first_item = group_index(group) * 64u;
  if (lane == 0u && first_item < all) { stamp(min(64u, all - first_item)); }
  let item = first_item + lane;
  if (item >= all) { return; }
  let line = item / quads;
  let head = line % params.heads;
  let row = params.row_begin + line / params.heads;
  let position = places[2u * row + 1u];
  let first = max(position + 1u, params.window) - params.window;
  let begin = first + (item % quads) * 4u;
  if (begin > position) { return; }
  let key_heads = params.heads / params.group;
  let stride = key_heads * params.dim4;
  let query = (row * params.heads + head) * params.dim4;
  let key_row = places[2u * row] - position + min(vec4<u32>(begin, begin + 1u, begin + 2u, begin + 3u), vec4<u32>(position));
  let key = key_row * stride + (head / params.group) * params.dim4;
  var sums = vec4<f32>();
  for (var i = 0u; i < params.dim4; i++) {
    sums += q[query + i] * mat4x4<f32>(k[key.x + i], k[key.y + i], k[key.z + i], k[key.w + i]);
  }
  for (var j = 0u; j < 4u && begin + j <= position; j++) {
    var s = sums[j] * params.scale;
    if (params.cap > 0.0) { s = params.cap * tanh_f32(s / params.cap); }
    if (params.sloped == 1u) { s += slopes[head] * f32(begin + j); }
    scores[line * params.span + begin + j - first] = s;
  }
}
