// V[row, :] ← factor[row] · V[row, :] for the whole rows of a tile, in place; one f32 rounding.
// factor holds one f32 per row of the tile; shapes: values rows·cols f32 at `slot`.

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let begin = group_index(group) * 4096u;
  let end = min(begin + 4096u, params.elements);
  for (var e = begin + lane; e < end; e += 64u) {
    values[params.slot + e] = exact(values[params.slot + e] * factor[e / params.cols]);
  }
  if (lane == 0u && begin < end) { stamp(end - begin); }
}
