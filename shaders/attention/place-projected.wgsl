// place-heads.wgsl for queries, keys and values of one width at once: queries and keys rotated, queries to their own rows, keys
// and values to the rows of the cache. Head h of each begins at …_begin + h · …_stride of a row of x.
// Shapes: x [rows, x_stride], queries [rows, heads · head_dim], keys and values [·, key_heads · head_dim]. All f32.
// Tolerance: 2e-7 of the largest value.

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let row = group_index(group);
  if (row >= params.rows) { return; }
  let kept = params.key_heads * params.head_dim;
  let width = params.heads * params.head_dim;
  let to = places[2u * row] * kept;
  let table = places[2u * row + 1u] * 2u * params.half;
  let begin = row * params.x_stride;
  for (var e = lane; e < width; e += 64u) {
    let i = e % params.head_dim;
    queries[row * width + e] = rotated(begin + params.query_begin + e / params.head_dim * params.query_stride + i, i, table);
  }
  for (var e = lane; e < kept; e += 64u) {
    let i = e % params.head_dim;
    let head = e / params.head_dim;
    keys[to + e] = rotated(begin + params.key_begin + head * params.key_stride + i, i, table);
    values[to + e] = x[begin + params.value_begin + head * params.value_stride + i];
  }
  if (lane == 0u) { stamp(1u); }
}
