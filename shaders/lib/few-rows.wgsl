// Shared by the forms of the linear layer for few rows, with the norm ahead of it and the activation behind it:
// p(o) = bias[w_first + o] + scale · Σ_k n(x[r])[k] · w[w_first + o, k] + update_scale · Σ_k narrow[r, l, k] · out_of[w_first + o, k];
// y[r, y_begin + o] = (add ? y : 0) + p(o), or f(p(o)) · p(outputs + o) where gated.
// w is a sum: of the rows at w_first + o, and at as many steps of w_step rows further as there are more summands, each times the number
// beside it in bias.
// n: 0 x as it is, 1 x · norm / √(mean x² + ε), 2 the same with 1 + norm (matmul-vector.wgsl alone). gate: 0 none, else 1 + the code of lib/activation.wgsl.
// The last term is a low-rank update (rank4 = 0: none); l is the layer of up to three that o is of: they begin at 0, `second`, `third`.
// Shapes: x [rows, 4·x_stride4] f32, norm [4·inputs4], w [·, 4·inputs4] packed (weight-*.wgsl), bias and out_of [·, 4·rank4] beside
// w, narrow [rows, layers, 4·rank4], y [rows, y_stride].

// Word offsets of four rows of w. Past the edge the last one is read again; `store` drops it.
fn w_rows(first: u32) -> vec4<u32> {
  let out = min(vec4<u32>(first, first + 1u, first + 2u, first + 3u), vec4<u32>(params.outputs - 1u));
  return (out + params.w_first) * params.inputs4;
}

// As a matrix m of four weight rows: v * m is (v·m[0], v·m[1], v·m[2], v·m[3]).
fn w_quad(rows: vec4<u32>, k: u32) -> mat4x4<f32> {
  return mat4x4<f32>(weight4(rows.x + k), weight4(rows.y + k), weight4(rows.z + k), weight4(rows.w + k));
}

// Factors of four outputs of a summand.
fn factors(first: u32, summand: u32) -> vec4<f32> {
  if (summand == 0u) { return vec4<f32>(1.0); }
  let at = min(vec4<u32>(first, first + 1u, first + 2u, first + 3u), vec4<u32>(params.outputs * select(1u, 2u, params.gate > 0u) - 1u));
  let own = at + params.w_first + summand * params.w_step;
  return vec4<f32>(bias[own.x], bias[own.y], bias[own.z], bias[own.w]);
}

fn product(row: u32, out: u32, sum: f32) -> f32 {
  var value = sum;
  if (params.biased == 1u) { value += bias[params.w_first + out]; }
  if (params.rank4 == 0u) { return value; }
  let layer = u32(out >= params.second) + u32(out >= params.third);
  let at = (row * params.layers + layer) * params.rank4;
  let own = (params.w_first + out) * params.rank4;
  var update = 0.0;
  for (var k = 0u; k < params.rank4; k++) { update += dot(narrow[at + k], out_of[own + k]); }
  return value + params.update_scale * update;
}

// `other`: the sum of the row of w that `outputs` further on gates this one.
fn store(row: u32, out: u32, sum: f32, other: f32) {
  if (out >= params.outputs) { return; }
  let at = row * params.y_stride + params.y_begin + out;
  let value = product(row, out, sum);
  if (params.gate > 0u) { y[at] = activation(params.gate - 1u, value) * product(row, params.outputs + out, other); }
  else if (params.add == 1u) { y[at] += value; }
  else { y[at] = value; }
}
