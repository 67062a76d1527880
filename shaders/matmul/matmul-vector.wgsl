// The linear layer (lib/matmul.wgsl) for a few rows on real GPUs: a workgroup makes four outputs of one row, its lanes
// side by side along k, so that weights stream in whole cache lines.
// Tolerance: 1e-6 of the largest value.

var<workgroup> partial: array<vec4<f32>, 64>;

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let quads = (params.outputs + 3u) / 4u;
  let index = group_index(group);
  let r = min(index / quads, params.rows - 1u);
  let o = (index % quads) * 4u;
  let out = w_rows(o);
  var sums = vec4<f32>();
  for (var k = lane; k < params.inputs4; k += 64u) {
    sums += x[r * params.x_stride4 + k] * w_quad(out, k);
  }
  partial[lane] = sums;
  workgroupBarrier();
  for (var half = 32u; half > 0u; half >>= 1u) {
    if (lane < half) { partial[lane] += partial[lane + half]; }
    workgroupBarrier();
  }
  if (index >= params.rows * quads) { return; }
  if (lane < 4u && o + lane < params.outputs) { store_one(r, o + lane, partial[0][lane]); }
  if (lane == 0u) { stamp(1u); }
}
