// scores of row r and key j: cap(scale · q[r, h] · k[j, h / heads_per_key]) + slope[h] · j, cap(x) = c · tanh(x / c), none for c = 0.
// Groups and layout: lib/attention.wgsl. Columns that a row must not see are filled all the same; the softmax drops them.
// Shapes: q [·, heads · 4·dim4], k [·, (heads / heads_per_key) · 4·dim4], slopes [heads], f32.
// One invocation makes four columns of a group. Tolerance: 1e-6 of the largest value.

fn store(at: u32, sums: vec4<f32>, slant: vec4<f32>) {
  var s = sums * params.scale;
  if (params.cap > 0.0) {
    let x = s / params.cap;
    s = params.cap * vec4<f32>(tanh_f32(x.x), tanh_f32(x.y), tanh_f32(x.z), tanh_f32(x.w));
  }
  scores[at] = s + slant;
}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let quads = params.line_width / 4u;
  let all = params.groups * params.heads * quads;
  let first_item = group_index(group) * 64u;
  if (lane == 0u && first_item < all) { stamp(min(64u, all - first_item)); }
  let item = first_item + lane;
  if (item >= all) { return; }
  let quad = item % quads;
  let head = (item / quads) % params.heads;
  let index = item / quads / params.heads;
  let g = group_at(params.group_begin + index);
  if (quad >= column_quads(g)) { return; }
  let columns = four(first_column(g) + 4u * quad);
  let last = g.position + g.rows - 1u;
  let key = (g.origin + min(columns, vec4<u32>(last))) * (params.heads / params.heads_per_key) * params.dim4
    + (head / params.heads_per_key) * params.dim4;
  var slant = vec4<f32>();
  if (params.sloped == 1u) { slant = slopes[head] * vec4<f32>(columns); }
  let out = (index * params.heads + head) * 4u * quads + quad;
  let query = ((g.row + min(four(0u), vec4<u32>(g.rows - 1u))) * params.heads + head) * params.dim4;
  var s0 = vec4<f32>();
  if (g.rows == 1u) {
    for (var i = 0u; i < params.dim4; i++) {
      s0 += q[query.x + i] * mat4x4<f32>(k[key.x + i], k[key.y + i], k[key.z + i], k[key.w + i]);
    }
    store(out, s0, slant);
    return;
  }
  var s1 = vec4<f32>();
  var s2 = vec4<f32>();
  var s3 = vec4<f32>();
  for (var i = 0u; i < params.dim4; i++) {
    let m = mat4x4<f32>(k[key.x + i], k[key.y + i], k[key.z + i], k[key.w + i]);
    s0 += q[query.x + i] * m;
    s1 += q[query.y + i] * m;
    s2 += q[query.z + i] * m;
    s3 += q[query.w + i] * m;
  }
  store(out, s0, slant);
  store(out + quads, s1, slant);
  if (g.rows > 2u) { store(out + 2u * quads, s2, slant); }
  if (g.rows > 3u) { store(out + 3u * quads, s3, slant); }
}
