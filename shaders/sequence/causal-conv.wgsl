// y[r, c] = f(bias[c] + Σ_k weight[c, k] · x[r − taps + 1 + k, c]) along every piece of a sequence, f SiLU or nothing.
// Rows ahead of a piece are the taps − 1 rows stored in `before`, or zero where its sequence begins.
// pieces_at[4p …] = (first row, rows, slot, 1 where its sequence begins).
// Shapes: x [rows, x_stride] from x_begin on, before [slots, taps − 1, channels], weight [channels, taps], y [rows, y_stride], f32.
// One invocation a channel of a piece's row. Tolerance: 1e-6 of the largest value.

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let strips = (params.channels + 63u) / 64u;
  let index = group_index(group);
  if (index >= params.pieces * strips) { return; }
  if (lane == 0u) { stamp(1u); }
  let c = (index % strips) * 64u + lane;
  if (c >= params.channels) { return; }
  let p = 4u * (index / strips);
  let first = pieces_at[p];
  let line = pieces_at[p + 2u] * (params.taps - 1u);
  let fresh = pieces_at[p + 3u] == 1u;
  for (var r = 0u; r < pieces_at[p + 1u]; r++) {
    var sum = 0.0;
    if (params.biased == 1u) { sum = bias[c]; }
    for (var k = 0u; k < params.taps; k++) {
      let w = weight[c * params.taps + k];
      if (r + k + 1u >= params.taps) {
        sum += w * x[(first + r + k + 1u - params.taps) * params.x_stride + params.x_begin + c];
      } else if (!fresh) {
        sum += w * before[(line + r + k) * params.channels + c];
      }
    }
    if (params.silu == 1u) { sum *= sigmoid_f32(sum); }
    y[(first + r) * params.y_stride + c] = sum;
  }
}
