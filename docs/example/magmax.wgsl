// MagMax: out = W₀ + λ·τ_i, i the model with the largest |τ_i| (the first of equals). coefficients[0] = λ;
// counters[i] += elements taken from model i. Shapes: slot 0 = W₀, slot i = τ_i, `stride` f32 apart → elements f32.

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let begin = min(group_index(group) * 4096u, params.elements);
  let end = min(begin + 4096u, params.elements);
  for (var e = begin + lane; e < end; e += 64u) {
    var best = 0u;
    for (var i = 1u; i < params.models; i++) {
      let size = abs(values[(i + 1u) * params.stride + e]);
      if (size > abs(values[(best + 1u) * params.stride + e])) { best = i; }
    }
    atomicAdd(&counters[best], 1u);
    let delta = exact(values[(best + 1u) * params.stride + e] * coefficients[0]);
    out[e] = select(bitcast<u32>(exact(values[e] + delta)), bitcast<u32>(values[e]), delta == 0.0);
  }
  if (lane == 0u && begin < end) { stamp(end - begin); }
}
