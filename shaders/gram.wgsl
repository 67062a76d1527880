// Sums of all pairwise products of `count` vectors over runs of `run` elements: sums[r · pairs + p] =
// Σ_{e in run r} v_i[e] · v_j[e] for the pairs i ≤ j in row order, pairs = count(count + 1)/2. A run is a block of 4096,
// whose sums the host adds in f64, or a row of a matrix. Inside a run lane l sums elements l, l + 64, … in f32 and lane
// sums are added in order: same bits on CPU and GPU.
// Shapes: count vectors of `elements` f32, `stride` apart, beginning at `slot` → ⌈elements/run⌉ · pairs f32.

struct Params {
  stamp: vec4<u32>,
  elements: u32,
  slot: u32,
  stride: u32,
  count: u32,
  run: u32,
}

@group(0) @binding(1) var<storage, read> values: array<f32>;
@group(0) @binding(2) var<storage, read_write> sums: array<f32>;

var<workgroup> partial: array<f32, 64>;

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let block = group_index(group);
  let begin = min(block * params.run, params.elements);
  let end = min(begin + params.run, params.elements);
  let pairs = params.count * (params.count + 1u) / 2u;
  var p = 0u;
  for (var i = 0u; i < params.count; i++) {
    let a = params.slot + i * params.stride;
    for (var j = i; j < params.count; j++) {
      let b = params.slot + j * params.stride;
      var sum = 0.0;
      for (var e = begin + lane; e < end; e += 64u) {
        sum = exact(sum + exact(values[a + e] * values[b + e]));
      }
      partial[lane] = sum;
      workgroupBarrier();
      if (lane == 0u && begin < end) {
        var total = 0.0;
        for (var l = 0u; l < 64u; l++) { total = exact(total + partial[l]); }
        sums[block * pairs + p] = total;
      }
      workgroupBarrier();
      p++;
    }
  }
  if (lane == 0u && begin < end) { stamp(end - begin); }
}
