// Competition of changes (PCB-Merging): B_i = e^(n·u²)·τ_i·S where τ_i has the sign of S = Σ τ_j, else 0, u = min(|τ_i| / h_i, 1).
// params.model < models: out = B of that model. Else in place: τ_i = s_i·clip(τ_i, h_i) / Σ s_j, s_i = (B_i − θ_i) / (b_i − θ_i),
// 0 up to θ_i and 1 from b_i on; what is not finite stays. coefficients, a model each: h, 1/h, θ, b, 1/(b − θ); kept: how many
// s_i are not 0. e^(u²) is a Taylor sum of ten terms (2^-24 off); every product and sum is one rounding: same bits on CPU and GPU.
// Shapes: slot i = τ_i, `stride` f32 apart → elements f32; models ≤ 32.

var<workgroup> counts: array<atomic<u32>, 32>;

fn balance(t: f32, sum: f32, model: u32) -> f32 {
  let x = exact(t * sum);
  if (!(x > 0.0)) { return 0.0; }
  let u = min(exact(min(abs(t), coefficients[5u * model]) * coefficients[5u * model + 1u]), 1.0);
  let z = exact(u * u);
  var power = 1.0;
  for (var k = 10u; k > 0u; k--) { power = exact(exact(power * exact(z * coefficients[5u * params.models + k - 1u])) + 1.0); }
  var all = x;
  for (var i = 0u; i < params.models; i++) { all = exact(all * power); }
  return all;
}

// 1/x by Newton's method, as in combine.wgsl
fn inverse(x: f32) -> f32 {
  var r = bitcast<f32>(0x7ef311c3u - bitcast<u32>(x));
  for (var k = 0u; k < 4u; k++) { r = exact(r * exact(2.0 - exact(x * r))); }
  return r;
}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let begin = min(group_index(group) * 4096u, params.elements);
  let end = min(begin + 4096u, params.elements);
  let n = params.models;
  for (var e = begin + lane; e < end; e += 64u) {
    var sum = 0.0;
    for (var i = 1u; i <= n; i++) { sum = exact(sum + values[i * params.stride + e]); }
    let special = (bitcast<u32>(sum) & 0x7f800000u) == 0x7f800000u;
    if (params.model < n) {
      var found = 0.0;
      if (!special) { found = balance(values[(params.model + 1u) * params.stride + e], sum, params.model); }
      out[e] = bitcast<u32>(found);
      continue;
    }
    if (special) { continue; }
    var shares = array<f32, 32>();
    var total = 0.0;
    for (var i = 0u; i < n; i++) {
      let b = balance(values[(i + 1u) * params.stride + e], sum, i);
      let least = coefficients[5u * i + 2u];
      let most = coefficients[5u * i + 3u];
      shares[i] = 0.0;
      if (b > 0.0 && b > least) { shares[i] = exact(exact(b - least) * coefficients[5u * i + 4u]); }
      if (b > 0.0 && b >= most) { shares[i] = 1.0; }
      total = exact(total + shares[i]);
    }
    let factor = inverse(total);
    for (var i = 0u; i < n; i++) {
      let at = (i + 1u) * params.stride + e;
      let most = coefficients[5u * i];
      let share = exact(shares[i] * factor);
      values[at] = select(0.0, exact(clamp(values[at], -most, most) * share), shares[i] > 0.0);
      if (shares[i] > 0.0) { atomicAdd(&counts[i], 1u); }
    }
  }
  workgroupBarrier();
  if (lane < n && params.model >= n) { atomicAdd(&kept[lane], atomicLoad(&counts[lane])); }
  if (lane == 0u && begin < end) { stamp(end - begin); }
}
