// Shared by the forms of the linear layer for few rows, with the norm ahead of it and the activation behind it:
// p(o) = bias[w_first + o] + scale · Σ_k n(x[r])[k] · w[w_first + o, k];
// y[r, y_begin + o] = (add ? y : 0) + p(o), or f(p(o)) · p(outputs + o) where gated.
// n: 0 x as it is, 1 x · norm / √(mean x² + ε), 2 the same with 1 + norm. gate: 0 none, else 1 + the code of lib/activation.wgsl.
// Shapes: x [rows, 4·x_stride4] f32, norm [4·inputs4], w [·, 4·inputs4] packed (weight-*.wgsl), bias beside w, y [rows, y_stride].

// Word offsets of four rows of w. Past the edge the last one is read again; `store` drops it.
fn w_rows(first: u32) -> vec4<u32> {
  let out = min(vec4<u32>(first, first + 1u, first + 2u, first + 3u), vec4<u32>(params.outputs - 1u));
  return (out + params.w_first) * params.inputs4;
}

// As a matrix m of four weight rows: v * m is (v·m[0], v·m[1], v·m[2], v·m[3]).
fn w_quad(rows: vec4<u32>, k: u32) -> mat4x4<f32> {
  return mat4x4<f32>(weight4(rows.x + k), weight4(rows.y + k), weight4(rows.z + k), weight4(rows.w + k));
}

fn entering(v: vec4<f32>, k: u32) -> vec4<f32> {
  if (params.norm_kind == 0u) { return v; }
  return v * (norm[k] + f32(params.norm_kind - 1u));
}

// Factor of the sums of a row of which this is Σ x².
fn factor(squares: f32) -> f32 {
  if (params.norm_kind == 0u) { return params.scale; }
  return params.scale / sqrt(squares / f32(4u * params.inputs4) + params.epsilon);
}

fn product(out: u32, sum: f32) -> f32 {
  if (params.biased == 1u) { return sum + bias[params.w_first + out]; }
  return sum;
}

// `other`: the sum of the row of w that `outputs` further on gates this one.
fn store(row: u32, out: u32, sum: f32, other: f32) {
  if (out >= params.outputs) { return; }
  let at = row * params.y_stride + params.y_begin + out;
  let value = product(out, sum);
  if (params.gate > 0u) { y[at] = activation(params.gate - 1u, value) * product(params.outputs + out, other); }
  else if (params.add == 1u) { y[at] += value; }
  else { y[at] = value; }
}
