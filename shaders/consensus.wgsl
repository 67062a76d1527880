// Consensus merging: out = W₀ + λ·S, S = Σ τ_i, where at least k models claim the element: |τ_i| ≥ t·|S − τ_i|; W₀'s bits
// elsewhere. coefficients: t, k, λ; counters: elements with an effect, the same for each model. Every product, difference and
// sum is one rounding: same bits on CPU and GPU.
// Shapes: slot 0 = W₀, slot i = τ_i, `stride` f32 apart → elements f32; models ≤ 32.

var<workgroup> kept: atomic<u32>;

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let begin = min(group_index(group) * 4096u, params.elements);
  let end = min(begin + 4096u, params.elements);
  let n = params.models;
  for (var e = begin + lane; e < end; e += 64u) {
    var sum = 0.0;
    for (var i = 1u; i <= n; i++) { sum = exact(sum + values[i * params.stride + e]); }
    var claims = 0.0;
    for (var i = 1u; i <= n; i++) {
      let v = values[i * params.stride + e];
      if (abs(v) >= exact(coefficients[0] * abs(exact(sum - v)))) { claims += 1.0; }
    }
    let special = (bitcast<u32>(sum) & 0x7f800000u) == 0x7f800000u; // NaN and infinities have to come through
    var delta = 0.0;
    if (special || claims >= coefficients[1]) { delta = exact(sum * coefficients[2]); }
    if (delta != 0.0 || special) { atomicAdd(&kept, 1u); }
    out[e] = select(bitcast<u32>(exact(values[e] + delta)), bitcast<u32>(values[e]), delta == 0.0);
  }
  workgroupBarrier();
  if (lane < n) { atomicAdd(&counters[lane], atomicLoad(&kept)); }
  if (lane == 0u && begin < end) { stamp(end - begin); }
}
