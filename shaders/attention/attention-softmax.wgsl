// Softmax of every line of scores (lib/attention.wgsl) over the columns its row may see, in place; the others become 0.
// The form for real GPUs: a workgroup a line. Tolerance: 2e-6 of the largest value.

var<workgroup> partial: array<f32, 64>;

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let lines = params.groups * params.heads * 4u;
  let index = group_index(group);
  if (index >= lines) { return; }
  let line = line_at(index);
  if (lane == 0u) { stamp(1u); }
  if (line.absent) { return; }
  let least = vec4<f32>(-3.4e38);
  var tops = least;
  for (var c = lane; c < line.quads; c += 64u) {
    tops = max(tops, select(least, scores[line.begin + c], seen(line, c)));
  }
  partial[lane] = max(max(tops.x, tops.y), max(tops.z, tops.w));
  workgroupBarrier();
  for (var half = 32u; half > 0u; half >>= 1u) {
    if (lane < half) { partial[lane] = max(partial[lane], partial[lane + half]); }
    workgroupBarrier();
  }
  let top = partial[0];
  workgroupBarrier();
  var sums = vec4<f32>();
  for (var c = lane; c < line.quads; c += 64u) {
    let e = exponential(line, c, top);
    scores[line.begin + c] = e;
    sums += e;
  }
  partial[lane] = sums.x + sums.y + sums.z + sums.w;
  workgroupBarrier();
  for (var half = 32u; half > 0u; half >>= 1u) {
    if (lane < half) { partial[lane] += partial[lane + half]; }
    workgroupBarrier();
  }
  for (var c = lane; c < line.quads; c += 64u) { scores[line.begin + c] /= partial[0]; }
}
