// Combine and add: D_i = w_i·(s_i·τ̂_i); mixed = Σ of the D_i that agree with the elected sign (all D_i without
// election); out = W₀ + λ·(mixed·reciprocal), the reciprocal of the divisor looked up by the set of agreeing models.
// Ballots of the election (TIES, Yadav et al. 2023): 1 = D_i (mergekit), 2 = s_i·τ̂_i without weights (the authors,
// PEFT `total`), 3 = their signs (PEFT `frequency`); the sum's sign wins, and zero elects + or, with `zero_negative`, −.
// An unchanged element keeps W₀'s bits (so −0 stays −0). Every product and sum is one rounding: same bits on CPU and
// GPU. Shapes: values (models + 1)·stride f32, slot 0 = W₀, slot i = τ̂_i → out elements f32; stats four words a block:
// elements whose ballots disagree in sign (u32), Σ (λ·…)² (f32), ballot sums above zero (u32), below zero (u32).

struct Params {
  stamp: vec4<u32>,
  elements: u32,
  stride: u32,
  models: u32,
  election: u32,
  zero_negative: u32,
  lambda: f32,
}

@group(0) @binding(1) var<storage, read> values: array<f32>;
// weights w_1 … w_n, scales s_1 … s_n, then the reciprocals: 2^models of them with an election, else 1
@group(0) @binding(2) var<storage, read> coefficients: array<f32>;
@group(0) @binding(3) var<storage, read_write> out: array<u32>;
@group(0) @binding(4) var<storage, read_write> stats: array<u32>;

var<workgroup> partial: array<f32, 64>;
var<workgroup> counts: array<atomic<u32>, 3>; // conflicts, sums above zero, sums below zero

fn scaled(e: u32, model: u32) -> f32 {
  return exact(values[(model + 1u) * params.stride + e] * coefficients[params.models + model]);
}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let block = group_index(group);
  let begin = min(block * 4096u, params.elements);
  let end = min(begin + 4096u, params.elements);
  let n = params.models;
  var squares = 0.0;
  var found = vec3<u32>(0u);
  for (var e = begin + lane; e < end; e += 64u) {
    var mixed = 0.0;
    var votes = 0.0;
    var positive = 0u; // bit i: ballot i > 0
    var negative = 0u;
    for (var i = 0u; i < n; i++) {
      let s = scaled(e, i);
      let d = exact(s * coefficients[i]);
      var ballot = select(d, s, params.election >= 2u);
      if (ballot > 0.0) { positive |= 1u << i; }
      if (ballot < 0.0) { negative |= 1u << i; }
      if (params.election == 3u) { ballot = sign(ballot); }
      votes = exact(votes + ballot);
      mixed = exact(mixed + d);
    }
    found += vec3<u32>(
      select(0u, 1u, positive != 0u && negative != 0u),
      select(0u, 1u, votes > 0.0),
      select(0u, 1u, votes < 0.0),
    );
    var agreeing = 0u;
    let special = (bitcast<u32>(mixed) & 0x7fffffffu) > 0x7f800000u; // NaN comes through whoever is elected
    if (params.election != 0u && !special) {
      let plus = votes > 0.0 || (votes == 0.0 && params.zero_negative == 0u);
      agreeing = select(negative, positive, plus);
      mixed = 0.0;
      for (var i = 0u; i < n; i++) {
        if (((agreeing >> i) & 1u) == 1u) { mixed = exact(mixed + exact(scaled(e, i) * coefficients[i])); }
      }
    }
    let delta = exact(exact(mixed * coefficients[2u * n + agreeing]) * params.lambda);
    squares = exact(squares + exact(delta * delta));
    let sum = exact(values[e] + delta);
    out[e] = select(bitcast<u32>(sum), bitcast<u32>(values[e]), delta == 0.0);
  }
  for (var i = 0u; i < 3u; i++) {
    if (found[i] > 0u) { atomicAdd(&counts[i], found[i]); }
  }
  partial[lane] = squares;
  workgroupBarrier();
  if (lane == 0u && begin < end) {
    var sum = 0.0;
    for (var l = 0u; l < 64u; l++) { sum = exact(sum + partial[l]); }
    stats[4u * block] = atomicLoad(&counts[0]);
    stats[4u * block + 1u] = bitcast<u32>(sum);
    stats[4u * block + 2u] = atomicLoad(&counts[1]);
    stats[4u * block + 3u] = atomicLoad(&counts[2]);
    stamp(end - begin);
  }
}
