// For every row of logits, segments of 1024 columns: sums[r, s] = (max, Σ exp(factor · (x − max))); the host folds them in f64.
// picked[r] becomes the logit of the row's target where it lies in these columns (first_column … + columns − 1).
// Shapes: logits [rows, stride], targets [rows], sums [rows, segments, 2], picked [rows], f32.
// Tolerance: 3e-6 of the largest value.

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let segments = (params.columns + 1023u) / 1024u;
  let all = params.rows * segments;
  let first_item = group_index(group) * 64u;
  if (lane == 0u && first_item < all) { stamp(min(64u, all - first_item)); }
  let item = first_item + lane;
  if (item >= all) { return; }
  let row = item / segments;
  let begin = (item % segments) * 1024u;
  let end = min(begin + 1024u, params.columns);
  var top = -3.4e38;
  for (var c = begin; c < end; c++) { top = max(top, logits[row * params.stride + c]); }
  var sum = 0.0;
  // in parts, so that many small ones are not lost beside a large one
  for (var c = begin; c < end;) {
    var part = 0.0;
    for (let to = min(end, c + 32u); c < to; c++) {
      part += exp((logits[row * params.stride + c] - top) * params.factor);
    }
    sum += part;
  }
  sums[params.sums_begin + 2u * item] = top;
  sums[params.sums_begin + 2u * item + 1u] = sum;
  let wanted = targets[row];
  if (wanted >= params.first_column + begin && wanted < params.first_column + end) {
    picked[row] = logits[row * params.stride + wanted - params.first_column];
  }
}
