// Exact counts of what a merge did to a tile, n = models:
// counts[0] += elements whose packed value is W₀ rounded to the output dtype (+0 and −0 are the same number);
// counts[1 + i] += kept changes of model i, other than 0, that the sign election drops (ballots as in combine.wgsl);
// counts[1 + n + p] += elements in which both models of pair p = (i ≤ j), in row order, keep a change other than 0.
// A lane visits elements lane, lane + 64, … of its block and collects 32 of them as bits of a word a model.
// Shapes: values (n + 1)·stride f32, slot 0 = W₀, slot i = trimmed τ_i; packed words → 1 + n + n(n + 1)/2 u32, n ≤ 32.

var<workgroup> found: array<atomic<u32>, 561>;

fn at_base(e: u32) -> bool {
  var bits = values[e];
  if ((bits & 0x7fffffffu) > 0x7f800000u) { bits = 0x7fc00000u; }
  var stored = packed[select(e / 2u, e, params.dtype == 0u)];
  var magnitude = 0x7fffffffu;
  if (params.dtype != 0u) {
    magnitude = 0x7fffu;
    stored = (stored >> (16u * (e & 1u))) & 0xffffu;
    if (params.dtype == 2u) { bits = narrow_bf16(bits); } else { bits = narrow_f16(bits); }
  }
  return bits == stored || ((bits | stored) & magnitude) == 0u;
}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let block = group_index(group);
  let begin = min(block * 4096u, params.elements);
  let end = min(begin + 4096u, params.elements);
  let n = params.models;
  for (var half = 0u; half < 2u; half++) {
    // not every driver clears what a loop declares
    var some = array<u32, 32>();
    var lost = array<u32, 32>();
    var still = 0u;
    for (var bit = 0u; bit < 32u; bit++) {
      let e = begin + (half * 32u + bit) * 64u + lane;
      if (e >= end) { break; }
      let one = 1u << bit;
      if (at_base(e)) { still |= one; }
      var total = 0.0;
      var votes = 0.0;
      var positive = 0u;
      var negative = 0u;
      for (var i = 0u; i < n; i++) {
        let bits = values[(i + 1u) * params.stride + e];
        if ((bits & 0x7fffffffu) != 0u) { some[i] |= one; }
        if (params.election == 0u) { continue; }
        let s = exact(bitcast<f32>(bits) * coefficients[n + i]);
        let d = exact(s * coefficients[i]);
        let ballot = select(d, s, params.election >= 2u);
        if (ballot > 0.0) { positive |= 1u << i; }
        if (ballot < 0.0) { negative |= 1u << i; }
        total = exact(total + d);
        votes = exact(votes + select(ballot, sign(ballot), params.election == 3u));
      }
      // NaN comes through whoever is elected
      if ((bitcast<u32>(total) & 0x7fffffffu) > 0x7f800000u) { continue; }
      let plus = votes > 0.0 || (votes == 0.0 && params.zero_negative == 0u);
      let against = select(positive, negative, plus);
      for (var i = 0u; i < n; i++) {
        if (((against >> i) & 1u) == 1u) { lost[i] |= one; }
      }
    }
    atomicAdd(&found[0], countOneBits(still));
    var pair = 1u + n;
    for (var i = 0u; i < n; i++) {
      if (lost[i] != 0u) { atomicAdd(&found[1u + i], countOneBits(lost[i])); }
      for (var j = i; j < n; j++) {
        let both = some[i] & some[j];
        if (both != 0u) { atomicAdd(&found[pair], countOneBits(both)); }
        pair++;
      }
    }
  }
  workgroupBarrier();
  for (var k = lane; k < 1u + n + n * (n + 1u) / 2u; k += 64u) {
    let total = atomicLoad(&found[k]);
    if (total > 0u) { atomicAdd(&counts[k], total); }
  }
  if (lane == 0u && begin < end) { stamp(end - begin); }
}
