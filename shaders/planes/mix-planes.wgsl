// Alternating updates (Baykal et al. 2023; transformers modeling_gemma3n.py) over the `planes` planes of a row, t_m = tanh(s[r, m]):
// predict:  y_p = x_p + Σ_q x_q · (Σ_m w[p · planes + q, m] · t_m)
// correct:  y_p = x_p + (a − x_0) · (1 + Σ_m w[p, m] · t_m)
// first is y_0 once more. Shapes: x, y [rows, planes, width]; a, first [rows, width]; s [rows, s_stride]; w [planes² or planes, planes].
// An invocation for each column of a row. Tolerance: 2e-6 of the largest value.

fn coefficient(row: u32, line: u32) -> f32 {
  var sum = 0.0;
  for (var m = 0u; m < params.planes; m++) {
    sum += w[line * params.planes + m] * tanh_f32(s[row * params.s_stride + m]);
  }
  return sum;
}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let all = params.rows * params.width;
  let begin = group_index(group) * 64u;
  if (lane == 0u && begin < all) { stamp(min(64u, all - begin)); }
  let e = begin + lane;
  if (e >= all) { return; }
  let row = e / params.width;
  let at = row * params.planes * params.width + e % params.width;
  for (var p = 0u; p < params.planes; p++) {
    var value = x[at + p * params.width];
    if (params.correct == 1u) {
      value += (a[e] - x[at]) * (1.0 + coefficient(row, p));
    } else {
      for (var q = 0u; q < params.planes; q++) {
        value += x[at + q * params.width] * coefficient(row, p * params.planes + q);
      }
    }
    y[at + p * params.width] = value;
    if (p == 0u) { first[e] = value; }
  }
}
