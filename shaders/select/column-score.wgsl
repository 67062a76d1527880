// key = bits(|τ[r, c]| · scale[c]) + 1: the score of an entry as an integer in the same order, and never 0, so that the trim
// (select-threshold.wgsl), which zeros what goes, keeps entries whose score is 0 where the quota reaches them.
// Columns are taken in blocks of `block` columns, and the keys of a block lie together, row after row.
// One rounding: same bits on CPU and GPU. Shapes: values rows·cols f32, scale [cols] f32 → keys rows·cols u32.

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let n = params.rows * params.cols;
  let begin = min(group_index(group) * 1024u, n);
  let end = min(begin + 1024u, n);
  for (var e = begin + lane; e < end; e += 64u) {
    let c = e % params.cols;
    let first = c - c % params.block;
    let width = min(params.block, params.cols - first);
    let at = first * params.rows + (e / params.cols) * width + c - first;
    keys[at] = bitcast<u32>(exact(abs(values[e]) * scale[c])) + 1u;
  }
  if (lane == 0u && begin < end) { stamp(end - begin); }
}
