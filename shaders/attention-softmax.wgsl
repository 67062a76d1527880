// Softmax of every line of scores [rows, heads, span] over the keys its row may see (attention-scores.wgsl), in place.
// Tolerance: 2e-6 of the largest value.

struct Params {
  stamp: vec4<u32>,
  rows: u32,
  row_begin: u32,
  heads: u32,
  span: u32,
  window: u32,
}

@group(0) @binding(1) var<storage, read> places: array<u32>;
@group(0) @binding(2) var<storage, read_write> scores: array<f32>;

var<workgroup> partial: array<f32, 64>;

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let lines = params.rows * params.heads;
  let index = group_index(group);
  let line = min(index, lines - 1u);
  let position = places[2u * (params.row_begin + line / params.heads) + 1u];
  let count = min(position + 1u, params.window);
  let begin = line * params.span;
  var top = -3.4e38;
  for (var j = lane; j < count; j += 64u) { top = max(top, scores[begin + j]); }
  partial[lane] = top;
  workgroupBarrier();
  for (var l = 0u; l < 64u; l++) { top = max(top, partial[l]); }
  workgroupBarrier();
  var sum = 0.0;
  for (var j = lane; j < count; j += 64u) { sum += exp(scores[begin + j] - top); }
  partial[lane] = sum;
  workgroupBarrier();
  var all = 0.0;
  for (var l = 0u; l < 64u; l++) { all += partial[l]; }
  if (index >= lines) { return; }
  for (var j = lane; j < count; j += 64u) { scores[begin + j] = exp(scores[begin + j] - top) / all; }
  if (lane == 0u) { stamp(1u); }
}
