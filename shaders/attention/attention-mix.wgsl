// y[r, h] = Σ_j shares[r, h, j] · v[j, h / heads_per_key] over the columns of the row's group (lib/attention.wgsl).
// Shapes: v [·, (heads / heads_per_key) · 4·dim4], y [·, heads · 4·dim4], f32.
// One invocation makes four dimensions of one head for a whole group. Tolerance: 1e-6 of the largest value.

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let all = params.groups * params.heads * params.dim4;
  let first_item = group_index(group) * 64u;
  if (lane == 0u && first_item < all) { stamp(min(64u, all - first_item)); }
  let item = first_item + lane;
  if (item >= all) { return; }
  let i = item % params.dim4;
  let head = (item / params.dim4) % params.heads;
  let index = item / params.dim4 / params.heads;
  let g = group_at(params.group_begin + index);
  let stride = (params.heads / params.heads_per_key) * params.dim4;
  let offset = (head / params.heads_per_key) * params.dim4 + i;
  let base = first_column(g);
  let last = vec4<u32>(g.position + g.rows - 1u);
  let quads = params.line_width / 4u;
  let line = (index * params.heads + head) * 4u * quads;
  var s0 = vec4<f32>();
  var s1 = vec4<f32>();
  var s2 = vec4<f32>();
  var s3 = vec4<f32>();
  for (var c = 0u; c < column_quads(g); c++) {
    let key = (g.origin + min(four(base + 4u * c), last)) * stride + offset;
    let m = mat4x4<f32>(v[key.x], v[key.y], v[key.z], v[key.w]);
    s0 += m * shares[line + c];
    if (g.rows > 1u) {
      s1 += m * shares[line + quads + c];
      s2 += m * shares[line + 2u * quads + c];
      s3 += m * shares[line + 3u * quads + c];
    }
  }
  let at = (g.row * params.heads + head) * params.dim4 + i;
  let row = params.heads * params.dim4;
  y[at] = s0;
  if (g.rows > 1u) { y[at + row] = s1; }
  if (g.rows > 2u) { y[at + 2u * row] = s2; }
  if (g.rows > 3u) { y[at + 3u * row] = s3; }
}
