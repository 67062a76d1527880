// y[r, ·] ← y[r, ·] · √(mean x[r, ·]²) / √max(mean y[r, ·]², 1e-5): rows brought to the size of others (transformers
// modeling_gemma3n.py). Shapes: x, y [rows, width]. An invocation a row. Tolerance: 2e-6 of the largest value.

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let first = group_index(group) * 64u;
  if (lane == 0u && first < params.rows) { stamp(min(64u, params.rows - first)); }
  let row = first + lane;
  if (row >= params.rows) { return; }
  let begin = row * params.width;
  var wanted = 0.0;
  var own = 0.0;
  for (var i = begin; i < begin + params.width; i++) {
    wanted += x[i] * x[i];
    own += y[i] * y[i];
  }
  let n = f32(params.width);
  let factor = sqrt(wanted / n) / sqrt(max(own / n, 1e-5));
  for (var i = begin; i < begin + params.width; i++) { y[i] *= factor; }
}
