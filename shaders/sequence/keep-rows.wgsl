// before[slot, k, c] ← x[first + rows − kept + k, c]: the last rows of every piece, for the convolution of the next piece.
// A piece with fewer rows moves up the stored rows, or zeros where its sequence begins. pieces_at as in causal-conv.wgsl.
// Shapes: x [rows, x_stride] from x_begin on, before [slots, kept, channels], f32.
// Tolerance: 0 of the largest value.

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let strips = (params.channels + 63u) / 64u;
  let index = group_index(group);
  if (index >= params.pieces * strips) { return; }
  if (lane == 0u) { stamp(1u); }
  let c = (index % strips) * 64u + lane;
  if (c >= params.channels) { return; }
  let p = 4u * (index / strips);
  let rows = pieces_at[p + 1u];
  let line = pieces_at[p + 2u] * params.kept;
  // ascending: what moves up is read before it is overwritten
  for (var k = 0u; k < params.kept; k++) {
    var value = 0.0;
    if (rows + k >= params.kept) {
      value = x[(pieces_at[p] + rows + k - params.kept) * params.x_stride + params.x_begin + c];
    } else if (pieces_at[p + 3u] == 0u) {
      value = before[(line + k + rows) * params.channels + c];
    }
    before[(line + k) * params.channels + c] = value;
  }
}
