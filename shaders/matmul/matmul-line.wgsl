// The linear layer (lib/matmul.wgsl) for one or two rows: eight outputs of one row per invocation, no barriers.
// Tolerance: 1e-6 of the largest value.

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let blocks = params.rows * ((params.outputs + 7u) / 8u);
  let first_block = group_index(group) * 64u;
  if (lane == 0u && first_block < blocks) { stamp(min(64u, blocks - first_block)); }
  let block = first_block + lane;
  if (block >= blocks) { return; }
  let r = block % params.rows;
  let o = (block / params.rows) * 8u;
  let row = r * params.x_stride4;
  let out = w_rows(o);
  let out_b = w_rows(o + 4u);
  var a = vec4<f32>();
  var b = vec4<f32>();
  for (var k = 0u; k < params.inputs4; k++) {
    let v = x[row + k];
    a += v * w_quad(out, k);
    b += v * w_quad(out_b, k);
  }
  store(r, o, a);
  store(r, o + 4u, b);
}
