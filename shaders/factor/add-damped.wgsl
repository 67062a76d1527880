// y = (add ? y : 0) + scale · S + shift · I, and + 1 on the diagonal where S_jj is 0 and `fill_dead` is set; `reversed` turns the
// order of rows and columns around (y[i, j] from S[n−1−i, n−1−j]). With scale 0 and shift 1 it is the identity.
// Tolerance: 1e-6 of the largest value. Shapes: S, y [width, width] f32.

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let n = params.width * params.width;
  let begin = min(group_index(group) * 1024u, n);
  let end = min(begin + 1024u, n);
  for (var e = begin + lane; e < end; e += 64u) {
    let v = s[select(e, n - 1u - e, params.reversed == 1u)];
    var sum = v * params.scale;
    if (e / params.width == e % params.width) {
      sum += params.shift;
      if (params.fill_dead == 1u && v == 0.0) { sum += 1.0; }
    }
    if (params.add == 1u) { sum += y[e]; }
    y[e] = sum;
  }
  if (lane == 0u && begin < end) { stamp(end - begin); }
}
