// Combine and add: D_i = w_i·(s_i·τ̂_i); elected sign = + if Σ D_i ≥ 0 else − (TIES, Yadav et al. 2023, on weighted
// changes as mergekit does); mixed = Σ of the D_i that agree (all D_i without `consensus`);
// out = W₀ + λ·(mixed·reciprocal), the reciprocal of the divisor looked up by the set of agreeing models.
// An unchanged element keeps W₀'s bits (so −0 stays −0). Every product and sum is one f32 rounding: same bits on CPU
// and GPU. Shapes: values (models + 1)·stride f32, slot 0 = W₀, slot i = τ̂_i → out elements f32; per block
// stats[2·block] = elements whose D_i disagree in sign (u32), stats[2·block + 1] = Σ (λ·…)² (f32).

struct Params {
  stamp: vec4<u32>,
  elements: u32,
  stride: u32,
  models: u32,
  consensus: u32,
  lambda: f32,
}

@group(0) @binding(1) var<storage, read> values: array<f32>;
// weights w_1 … w_n, scales s_1 … s_n, then the reciprocals: 2^models of them with consensus, else 1
@group(0) @binding(2) var<storage, read> coefficients: array<f32>;
@group(0) @binding(3) var<storage, read_write> out: array<u32>;
@group(0) @binding(4) var<storage, read_write> stats: array<u32>;

var<workgroup> partial: array<f32, 64>;
var<workgroup> conflicts: atomic<u32>;

fn change(e: u32, model: u32) -> f32 {
  let scaled = exact(values[(model + 1u) * params.stride + e] * coefficients[params.models + model]);
  return exact(scaled * coefficients[model]);
}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let block = group_index(group);
  let begin = min(block * 4096u, params.elements);
  let end = min(begin + 4096u, params.elements);
  let n = params.models;
  var squares = 0.0;
  var mixed_signs = 0u;
  for (var e = begin + lane; e < end; e += 64u) {
    var total = 0.0;
    var positive = 0u; // bit i: D_i > 0
    var negative = 0u;
    for (var i = 0u; i < n; i++) {
      let d = change(e, i);
      total = total + d;
      if (d > 0.0) { positive |= 1u << i; }
      if (d < 0.0) { negative |= 1u << i; }
    }
    if (positive != 0u && negative != 0u) { mixed_signs++; }
    var mixed = total;
    var agreeing = 0u;
    if (params.consensus == 1u) {
      agreeing = select(negative, positive, total >= 0.0);
      mixed = 0.0;
      for (var i = 0u; i < n; i++) {
        if (((agreeing >> i) & 1u) == 1u) { mixed = mixed + change(e, i); }
      }
    }
    let delta = exact(exact(mixed * coefficients[2u * n + agreeing]) * params.lambda);
    squares = squares + exact(delta * delta);
    let sum = values[e] + delta;
    out[e] = select(bitcast<u32>(sum), bitcast<u32>(values[e]), delta == 0.0);
  }
  if (mixed_signs > 0u) { atomicAdd(&conflicts, mixed_signs); }
  partial[lane] = squares;
  workgroupBarrier();
  if (lane == 0u && begin < end) {
    var sum = 0.0;
    for (var l = 0u; l < 64u; l++) { sum = sum + partial[l]; }
    stats[2u * block] = atomicLoad(&conflicts);
    stats[2u * block + 1u] = bitcast<u32>(sum);
    stamp(end - begin);
  }
}
