// Rotary embedding of the first 2 · half dimensions of a head: (a, b) ↦ (a·cos − b·sin, b·cos + a·sin) in halves, or in
// neighbors where `adjacent`. angles [positions, 2·half]: cosines, then sines.

// Dimension i of a head, which lies at `at` in x, at the position whose angles begin at `table`.
fn rotated(at: u32, i: u32, table: u32) -> f32 {
  if (i >= 2u * params.half) { return x[at]; }
  // which pair, and whether this is its second
  let pair = select(i % max(params.half, 1u), i / 2u, params.adjacent == 1u);
  let second = select(i >= params.half, i % 2u == 1u, params.adjacent == 1u);
  let step = select(params.half, 1u, params.adjacent == 1u);
  let cosine = angles[table + pair];
  let sine = angles[table + params.half + pair];
  if (second) { return x[at] * cosine + x[at - step] * sine; }
  return x[at] * cosine - x[at + step] * sine;
}
