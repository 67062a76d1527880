// NearSwap: out = W where |W − W₀| ≤ t, else W₀ ± t: W₀ + clamp(t / |τ|, 0, 1) · τ without a division.
// coefficients[0] = t. Shapes: slot 0 = W₀, slot 1 = W → elements f32.

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let begin = min(group_index(group) * 4096u, params.elements);
  let end = min(begin + 4096u, params.elements);
  let t = coefficients[0];
  for (var e = begin + lane; e < end; e += 64u) {
    let d = exact(values[params.stride + e] - values[e]);
    let same = bitcast<u32>(values[params.stride + e]) == bitcast<u32>(values[e]); // infinities that both have
    if (same || abs(d) <= t) {
      out[e] = bitcast<u32>(values[params.stride + e]);
    } else {
      // neither above nor below zero: NaN, which comes through
      var step = d;
      if (d > 0.0) { step = t; }
      if (d < 0.0) { step = -t; }
      out[e] = bitcast<u32>(exact(values[e] + step));
    }
  }
  if (lane == 0u && begin < end) { stamp(end - begin); }
}
