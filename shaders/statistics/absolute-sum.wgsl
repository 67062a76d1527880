// Block sums of magnitudes: sums[out + block] = Σ_{e in block} |v[e]|; the host adds the blocks in f64 (‖τ‖₁ of the
// L1-matching rescale). Inside a block lane l sums elements l, l + 64, … in f32 and lane sums are added in order: same
// bits on CPU and GPU. Shapes: elements f32 at `slot` → ⌈elements/4096⌉ f32.

var<workgroup> partial: array<f32, 64>;

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let block = group_index(group);
  let begin = min(block * 4096u, params.elements);
  let end = min(begin + 4096u, params.elements);
  var sum = 0.0;
  for (var e = begin + lane; e < end; e += 64u) { sum = sum + abs(values[params.slot + e]); }
  partial[lane] = sum;
  workgroupBarrier();
  if (lane == 0u && begin < end) {
    var total = 0.0;
    for (var l = 0u; l < 64u; l++) { total = total + partial[l]; }
    sums[params.out + block] = total;
    stamp(end - begin);
  }
}
