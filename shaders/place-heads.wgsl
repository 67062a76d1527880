// Takes the heads of a projection out of its rows, rotates the first 2 · half dimensions of each (rotary embedding, in
// halves: (a, b) ↦ (a·cos − b·sin, b·cos + a·sin)), and puts them where attention reads them.
// places[2r] is the row of y that row r goes to, places[2r + 1] its position. half = 0 only copies.
// Shapes: x [rows, x_stride], head h at x_begin + h · head_stride; angles [positions, 2·half], cosines then sines;
// y [·, heads · head_dim]. All f32.
// Tolerance: 2e-7 of the largest value.

struct Params {
  stamp: vec4<u32>,
  rows: u32,
  heads: u32,
  head_dim: u32,
  half: u32,
  x_begin: u32,
  x_stride: u32,
  head_stride: u32,
  keep_rows: u32,
}

@group(0) @binding(1) var<storage, read> x: array<f32>;
@group(0) @binding(2) var<storage, read> places: array<u32>;
@group(0) @binding(3) var<storage, read> angles: array<f32>;
@group(0) @binding(4) var<storage, read_write> y: array<f32>;

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
    let at = params.x_begin + row * params.x_stride + (e / params.head_dim) * params.head_stride + i;
    var value = x[at];
    if (i < params.half) {
      value = value * angles[table + i] - x[at + params.half] * angles[table + params.half + i];
    } else if (i < 2u * params.half) {
      let pair = i - params.half;
      value = value * angles[table + pair] + x[at - params.half] * angles[table + params.half + pair];
    }
    y[target_row * width + e] = value;
  }
  if (lane == 0u) { stamp(1u); }
}
