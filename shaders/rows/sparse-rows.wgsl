// x[r, i] ← max(0, x[r, i] − (mean + deviations · σ)) over the first `width` columns of a row: the share of the largest that a normal
// distribution would leave above that bound (transformers modeling_gemma3n.py). σ² = mean (x − mean)².
// Shapes: x [rows, stride], f32. An invocation a row. Tolerance: 2e-6 of the largest value.

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let first = group_index(group) * 64u;
  if (lane == 0u && first < params.rows) { stamp(min(64u, params.rows - first)); }
  let row = first + lane;
  if (row >= params.rows) { return; }
  let begin = row * params.stride;
  let n = f32(params.width);
  var sum = 0.0;
  for (var i = begin; i < begin + params.width; i++) { sum += x[i]; }
  let mean = sum / n;
  var squares = 0.0;
  for (var i = begin; i < begin + params.width; i++) { squares += (x[i] - mean) * (x[i] - mean); }
  let bound = mean + params.deviations * sqrt(squares / n);
  for (var i = begin; i < begin + params.width; i++) { x[i] = max(0.0, x[i] - bound); }
}
