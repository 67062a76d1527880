// The linear layer for a few rows (lib/few-rows.wgsl) on real GPUs: a workgroup makes four outputs of one row, its lanes
// side by side along k, so that weights stream in whole cache lines.
// Tolerance: 1e-6 of the largest value.

fn entering(v: vec4<f32>, k: u32) -> vec4<f32> {
  if (params.norm_kind == 0u) { return v; }
  return v * (norm[k] + f32(params.norm_kind - 1u));
}

// Factor of the sums of a row of which this is Σ x².
fn factor(squares: vec4<f32>) -> f32 {
  if (params.norm_kind == 0u) { return params.scale; }
  let sum = squares.x + squares.y + squares.z + squares.w;
  return params.scale / sqrt(sum / f32(4u * params.inputs4) + params.epsilon);
}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let quads = (params.outputs + 3u) / 4u;
  let index = group_index(group);
  let r = min(index / quads, params.rows - 1u);
  let o = (index % quads) * 4u;
  var out = w_rows(o);
  var a = vec4<f32>();
  var b = vec4<f32>();
  var square = vec4<f32>();
  for (var s = 0u; s < params.summands; s++) {
    let out_b = out + params.outputs * params.inputs4;
    var own = vec4<f32>();
    var own_b = vec4<f32>();
    for (var k = lane; k < params.inputs4; k += 64u) {
      let raw = x[r * params.x_stride4 + k];
      let v = entering(raw, k);
      if (s == 0u) { square += raw * raw; }
      own += v * w_quad(out, k);
      if (params.gate > 0u) { own_b += v * w_quad(out_b, k); }
    }
    a += factors(o, s) * own;
    b += factors(o + params.outputs, s) * own_b;
    out += params.w_step * params.inputs4;
  }
  sum_up(lane, a, b, square);
  if (index >= params.rows * quads) { return; }
  if (lane == 0u) { stamp(1u); }
  if (lane >= 4u) { return; }
  let by = factor(squares[0]);
  store(r, o + lane, sums[0][lane] * by, others[0][lane] * by);
}
