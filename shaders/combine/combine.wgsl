// Combine and add: D_i = w_i·(s_i·τ̂_i); mixed = Σ of the D_i that agree with the elected sign (all D_i without
// election); W = W₀ + λ·(mixed·reciprocal), the reciprocal of the divisor looked up by the set of agreeing models, packed
// into the output dtype (lib/pack.wgsl).
// Ballots of the election (TIES, Yadav et al. 2023): 1 = D_i (mergekit), 2 = s_i·τ̂_i without weights (the authors,
// PEFT `total`), 3 = their signs (PEFT `frequency`); the sum's sign wins, and zero elects + or, with `zero_negative`, −.
// 4 = no election: all that are other than 0 agree.
// An unchanged element keeps W₀'s bits (so −0 stays −0). Every product and sum is one rounding: same bits on CPU and
// GPU. Shapes: values (models + 1)·stride f32, stride a multiple of 4, slot 0 = W₀, slot i = τ̂_i → packed words; stats four
// words a block: elements whose ballots disagree in sign (u32), Σ (λ·…)² (f32), ballot sums above zero (u32), below zero (u32).
// coefficients: weights w_1 … w_n, scales s_1 … s_n, then the reciprocals: 2^n of them with an election, else 1. Where more
// than 16 elect: what each adds to the divisor, then the least divisor; 0 divides by 1.

var<workgroup> counts: array<atomic<u32>, 12>; // a block's conflicts, sums above zero, sums below zero

fn scaled(quad: u32, model: u32) -> vec4<f32> {
  return exact4(values[(model + 1u) * params.stride / 4u + quad] * coefficients[params.models + model]);
}

fn reciprocals(agreeing: vec4<u32>) -> vec4<f32> {
  let at = vec4<u32>(2u * params.models) + agreeing;
  if (params.election == 0u) { return vec4<f32>(coefficients[at.x]); }
  if (params.models <= 16u) {
    return vec4<f32>(coefficients[at.x], coefficients[at.y], coefficients[at.z], coefficients[at.w]);
  }
  var divisor = vec4<f32>();
  for (var i = 0u; i < params.models; i++) {
    let more = exact4(divisor + coefficients[2u * params.models + i]);
    divisor = select(divisor, more, (agreeing & vec4<u32>(1u << i)) != vec4<u32>());
  }
  let nothing = divisor == vec4<f32>();
  return select(inverse(max(divisor, vec4<f32>(coefficients[3u * params.models]))), vec4<f32>(1.0), nothing);
}

// 1/x by Newton's method from a guess made of its bits: an ulp off at most, and the same bits everywhere
fn inverse(x: vec4<f32>) -> vec4<f32> {
  let size = abs(x);
  var r = bitcast<vec4<f32>>(vec4<u32>(0x7ef311c3u) - bitcast<vec4<u32>>(size));
  for (var k = 0u; k < 4u; k++) { r = exact4(r * exact4(vec4<f32>(2.0) - exact4(size * r))); }
  return r * sign(x);
}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let block = group_index(group) * PACK_BLOCKS + lane / 16u;
  let begin = min(block * 4096u, params.elements);
  let end = min(begin + 4096u, params.elements);
  let n = params.models;
  let zero = vec4<f32>();
  let nobody = vec4<u32>();
  var squares = zero;
  var found = vec3<u32>();
  var bad = 0u;
  for (var e = begin + lane % 16u * 4u; e < end; e += 64u) {
    let quad = e / 4u;
    let live = live4(e);
    var mixed = zero;
    var votes = zero;
    var positive = nobody; // bit i: ballot i > 0
    var negative = nobody;
    for (var i = 0u; i < n; i++) {
      let s = scaled(quad, i);
      let d = exact4(s * coefficients[i]);
      var ballot = select(d, s, vec4<bool>(params.election >= 2u));
      positive |= select(nobody, vec4<u32>(1u << i), ballot > zero);
      negative |= select(nobody, vec4<u32>(1u << i), ballot < zero);
      if (params.election == 3u) { ballot = sign(ballot); }
      votes = exact4(votes + ballot);
      mixed = exact4(mixed + d);
    }
    found += vec3<u32>(
      ones(live & (positive != nobody) & (negative != nobody)),
      ones(live & (votes > zero)),
      ones(live & (votes < zero)),
    );
    var agreeing = nobody;
    if (params.election != 0u) {
      let plus = (votes > zero) | ((votes == zero) & vec4<bool>(params.zero_negative == 0u));
      // NaN comes through whoever is elected
      let special = (bitcast<vec4<u32>>(mixed) & vec4<u32>(0x7fffffffu)) > vec4<u32>(0x7f800000u);
      let elected = select(select(negative, positive, plus), positive | negative, vec4<bool>(params.election == 4u));
      agreeing = select(elected, nobody, special);
      mixed = select(zero, mixed, special);
      for (var i = 0u; i < n; i++) {
        let agrees = (agreeing & vec4<u32>(1u << i)) != nobody;
        mixed = select(mixed, exact4(mixed + exact4(scaled(quad, i) * coefficients[i])), agrees);
      }
    }
    let delta = exact4(exact4(mixed * reciprocals(agreeing)) * params.lambda);
    squares = add_square(squares, delta, live);
    let base = values[quad];
    bad += pack4(e, bitcast<vec4<u32>>(select(exact4(base + delta), base, delta == zero)));
  }
  for (var i = 0u; i < 3u; i++) {
    if (found[i] > 0u) { atomicAdd(&counts[lane / 16u * 3u + i], found[i]); }
  }
  if (bad > 0u) { atomicAdd(&status[params.status], bad); }
  let change = block_sum(lane, squares);
  if (lane % 16u == 0u && begin < end) {
    let own = lane / 16u * 3u;
    stats[4u * block] = atomicLoad(&counts[own]);
    stats[4u * block + 1u] = bitcast<u32>(change);
    stats[4u * block + 2u] = atomicLoad(&counts[own + 1u]);
    stats[4u * block + 3u] = atomicLoad(&counts[own + 2u]);
    stamp(end - begin);
  }
}
