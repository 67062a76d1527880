// As attention-softmax-line.wgsl with one more score a head, sinks [heads], that takes its share of 1 and brings no value
// (Xiao et al. 2023, arXiv 2309.17453, as GPT-OSS learns it). An invocation a line. Tolerance: 2e-6 of the largest value.

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let lines = params.groups * params.heads * 4u;
  let first_line = group_index(group) * 64u;
  if (lane == 0u && first_line < lines) { stamp(min(64u, lines - first_line)); }
  if (first_line + lane >= lines) { return; }
  let line = line_at(first_line + lane);
  if (line.absent) { return; }
  let sink = sinks[((first_line + lane) / 4u) % params.heads];
  var tops = vec4<f32>(sink);
  for (var c = 0u; c < line.quads; c++) {
    tops = max(tops, select(vec4<f32>(sink), scores[line.begin + c], seen(line, c)));
  }
  let top = max(max(tops.x, tops.y), max(tops.z, tops.w));
  var sums = vec4<f32>();
  for (var c = 0u; c < line.quads; c++) {
    let e = exponential(line, c, top);
    scores[line.begin + c] = e;
    sums += e;
  }
  let total = sums.x + sums.y + sums.z + sums.w + exp(sink - top);
  for (var c = 0u; c < line.quads; c++) { scores[line.begin + c] /= total; }
}
