// Block sums of squared changes: sums[block] = Σ_{e in block} (out[e] − values[e])², slot 0 of values being the base.
// Inside a block lane l sums elements l, l + 64, … in f32 and lane sums are added in order: same bits on CPU and GPU.
// Shapes: elements f32 each → ⌈elements/4096⌉ f32, which the host adds in f64.

struct Params {
  stamp: vec4<u32>,
  elements: u32,
}

@group(0) @binding(1) var<storage, read> values: array<f32>;
@group(0) @binding(2) var<storage, read> out: array<f32>;
@group(0) @binding(3) var<storage, read_write> sums: array<f32>;

var<workgroup> partial: array<f32, 64>;

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let block = group_index(group);
  let begin = min(block * 4096u, params.elements);
  let end = min(begin + 4096u, params.elements);
  var sum = 0.0;
  for (var e = begin + lane; e < end; e += 64u) {
    let d = exact(out[e] - values[e]);
    sum = exact(sum + exact(d * d));
  }
  partial[lane] = sum;
  workgroupBarrier();
  if (lane == 0u && begin < end) {
    var total = 0.0;
    for (var l = 0u; l < 64u; l++) { total = exact(total + partial[l]); }
    sums[block] = total;
    stamp(end - begin);
  }
}
