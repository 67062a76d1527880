// y[r, c] += factor[c] · (x[r, c] − reference[r, c]): a mean whose weights differ from column to column, as deviations from one
// of what it averages, so that equal inputs give their own bits. Tolerance: 1e-6 of the largest value.
// Shapes: x, reference, y [elements/cols, cols] f32; factor [cols] f32.

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let begin = min(group_index(group) * 1024u, params.elements);
  let end = min(begin + 1024u, params.elements);
  for (var e = begin + lane; e < end; e += 64u) {
    y[e] += factor[e % params.cols] * (x[e] - reference[e]);
  }
  if (lane == 0u && begin < end) { stamp(end - begin); }
}
