// Reinforced Agent Merging: out = W₀ + λ_i·τ_i where only model i is active (|τ_i| > ε), W₀ + the mean of the active
// τ_i where several are, W₀'s bits elsewhere. coefficients: ε, 1/1 … 1/n, λ_1 … λ_n; counters: elements active in
// each model, then elements active in it alone. Every product and sum is one rounding: same bits on CPU and GPU.
// Shapes: slot 0 = W₀, slot i = τ_i, `stride` f32 apart → elements f32; models ≤ 32.

var<workgroup> counts: array<atomic<u32>, 64>;

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let begin = min(group_index(group) * 4096u, params.elements);
  let end = min(begin + 4096u, params.elements);
  let n = params.models;
  for (var e = begin + lane; e < end; e += 64u) {
    var active_models = 0u;
    var last = 0u;
    var sum = 0.0;
    for (var i = 0u; i < n; i++) {
      let v = values[(i + 1u) * params.stride + e];
      let special = (bitcast<u32>(v) & 0x7f800000u) == 0x7f800000u; // NaN and infinities have to come through
      if (special || abs(v) > coefficients[0]) {
        active_models++;
        last = i;
        sum = exact(sum + v);
        atomicAdd(&counts[i], 1u);
      }
    }
    if (active_models == 1u) { atomicAdd(&counts[n + last], 1u); }
    let factor = coefficients[select(active_models, 1u + n + last, active_models == 1u)];
    var delta = 0.0;
    if (active_models > 0u) { delta = exact(sum * factor); }
    out[e] = select(bitcast<u32>(exact(values[e] + delta)), bitcast<u32>(values[e]), delta == 0.0);
  }
  workgroupBarrier();
  if (lane < 2u * n) {
    let count = atomicLoad(&counts[lane]);
    if (count > 0u) { atomicAdd(&counters[lane], count); }
  }
  if (lane == 0u && begin < end) { stamp(end - begin); }
}
