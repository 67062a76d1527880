// Spread of the task vectors at every element: score[e] = Σ_{i<j} (τ_i[e] − τ_j[e])², which is n² times their
// population variance and exactly 0 where all are equal. Every difference, product and sum is one rounding.
// Shapes: values (models + 1)·stride f32, slot i = τ_i → elements f32.

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let begin = min(group_index(group) * 4096u, params.elements);
  let end = min(begin + 4096u, params.elements);
  for (var e = begin + lane; e < end; e += 64u) {
    var sum = 0.0;
    for (var i = 1u; i < params.models; i++) {
      let a = values[i * params.stride + e];
      for (var j = i + 1u; j <= params.models; j++) {
        let d = exact(a - values[j * params.stride + e]);
        sum = exact(sum + exact(d * d));
      }
    }
    score[e] = sum;
  }
  if (lane == 0u && begin < end) { stamp(end - begin); }
}
