// score[e] = |v[e]| · factor[row of e]: an importance that is an element's size times a property of its row.
// factor holds one f32 per row of the tile; one rounding. Shapes: whole rows, elements f32 at `slot` → elements f32.

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let begin = min(group_index(group) * 4096u, params.elements);
  let end = min(begin + 4096u, params.elements);
  for (var e = begin + lane; e < end; e += 64u) {
    score[e] = exact(abs(values[params.slot + e]) * factor[e / params.cols]);
  }
  if (lane == 0u && begin < end) { stamp(end - begin); }
}
