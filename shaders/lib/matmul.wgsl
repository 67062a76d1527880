// Shared by the forms of the linear layer for many rows:
// y[r, y_begin + o] = (add ? y : 0) + bias[w_first + o] + scale · Σ_k x[r, k] · w[w_first + o, k].
// Shapes: x [rows, 4·x_stride4] f32, w [·, 4·inputs4] packed (weight-*.wgsl), bias beside w, y [rows, y_stride].

// Word offsets of four rows of x, or of four rows of w. Past the edge the last one is read again; `store` drops it.
fn x_rows(first: u32) -> vec4<u32> {
  return min(vec4<u32>(first, first + 1u, first + 2u, first + 3u), vec4<u32>(params.rows - 1u)) * params.x_stride4;
}

fn w_rows(first: u32) -> vec4<u32> {
  let out = min(vec4<u32>(first, first + 1u, first + 2u, first + 3u), vec4<u32>(params.outputs - 1u));
  return (out + params.w_first) * params.inputs4;
}

// As a matrix m of four weight rows: v * m is (v·m[0], v·m[1], v·m[2], v·m[3]).
fn w_quad(rows: vec4<u32>, k: u32) -> mat4x4<f32> {
  return mat4x4<f32>(weight4(rows.x + k), weight4(rows.y + k), weight4(rows.z + k), weight4(rows.w + k));
}

fn store_one(row: u32, out: u32, sum: f32) {
  let at = row * params.y_stride + params.y_begin + out;
  var value = sum * params.scale;
  if (params.biased == 1u) { value += bias[params.w_first + out]; }
  if (params.add == 1u) { value += y[at]; }
  y[at] = value;
}

fn store(row: u32, first: u32, sums: vec4<f32>) {
  if (row >= params.rows) { return; }
  for (var j = 0u; j < 4u && first + j < params.outputs; j++) { store_one(row, first + j, sums[j]); }
}
