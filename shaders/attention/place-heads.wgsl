// Takes the heads of a projection out of its rows, rotates them (lib/rotate.wgsl; half = 0 only copies), and puts them where
// they are read. places[2r] is the row of y that row r goes to, places[2r + 1] its position.
// Shapes: x [rows, x_stride], head h at x_begin + ⌊h / group⌋ · group_stride + (h mod group) · head_stride; y [·, y_stride],
// head h at y_begin + h · y_dim. All f32. Tolerance: 2e-7 of the largest value.

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let row = group_index(group);
  if (row >= params.rows) { return; }
  let width = params.heads * params.head_dim;
  // queries stay in their own row, keys and values go to the cache
  let target_row = select(places[2u * row], row, params.keep_rows == 1u);
  let table = places[2u * row + 1u] * 2u * params.half;
  for (var e = lane; e < width; e += 64u) {
    let i = e % params.head_dim;
    let head = e / params.head_dim;
    let at = params.x_begin + row * params.x_stride + (head / params.group) * params.group_stride
      + (head % params.group) * params.head_stride + i;
    y[target_row * params.y_stride + params.y_begin + head * params.y_dim + i] = rotated(at, i, table);
  }
  if (lane == 0u) { stamp(1u); }
}
