// Takes the heads of a projection out of its rows, rotates the first 2 · half dimensions of each (rotary embedding:
// (a, b) ↦ (a·cos − b·sin, b·cos + a·sin) in halves, or in neighbors where `adjacent`), and puts them where they are read.
// places[2r] is the row of y that row r goes to, places[2r + 1] its position. half = 0 only copies.
// Shapes: x [rows, x_stride], head h at x_begin + ⌊h / group⌋ · group_stride + (h mod group) · head_stride; angles
// [positions, 2·half], cosines then sines; y [·, y_stride], head h at y_begin + h · y_dim. All f32.
// Tolerance: 2e-7 of the largest value.

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
    var value = x[at];
    if (i < 2u * params.half) {
      // which pair, and whether this is its second
      let pair = select(i % max(params.half, 1u), i / 2u, params.adjacent == 1u);
      let second = select(i >= params.half, i % 2u == 1u, params.adjacent == 1u);
      let step = select(params.half, 1u, params.adjacent == 1u);
      let cosine = angles[table + pair];
      let sine = angles[table + params.half + pair];
      if (second) { value = value * cosine + x[at - step] * sine; }
      else { value = value * cosine - x[at + step] * sine; }
    }
    y[target_row * params.y_stride + params.y_begin + head * params.y_dim + i] = value;
  }
  if (lane == 0u) { stamp(1u); }
}
