// The linear layer for one or two rows (lib/few-rows.wgsl) on software adapters: eight sums of one row per invocation, no
// barriers; the norm is not taken along, as each would compute it anew. Tolerance: 1e-6 of the largest value.

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let gated = params.gate > 0u;
  let width = select(8u, 4u, gated);
  let blocks = params.rows * ((params.outputs + width - 1u) / width);
  let first_block = group_index(group) * 64u;
  if (lane == 0u && first_block < blocks) { stamp(min(64u, blocks - first_block)); }
  let block = first_block + lane;
  if (block >= blocks) { return; }
  let r = block % params.rows;
  let o = (block / params.rows) * width;
  let row = r * params.x_stride4;
  let o_b = o + select(4u, params.outputs, gated);
  var out = w_rows(o);
  var out_b = select(w_rows(o + 4u), out + params.outputs * params.inputs4, gated);
  var a = vec4<f32>();
  var b = vec4<f32>();
  for (var s = 0u; s < params.summands; s++) {
    var own = vec4<f32>();
    var own_b = vec4<f32>();
    for (var k = 0u; k < params.inputs4; k++) {
      let v = x[row + k];
      own += v * w_quad(out, k);
      own_b += v * w_quad(out_b, k);
    }
    a += factors(o, s) * own;
    b += factors(o_b, s) * own_b;
    out += params.w_step * params.inputs4;
    out_b += params.w_step * params.inputs4;
  }
  a *= params.scale;
  b *= params.scale;
  for (var j = 0u; j < 4u; j++) {
    store(r, o + j, a[j], b[j]);
    if (!gated) { store(r, o + 4u + j, b[j], 0.0); }
  }
}
