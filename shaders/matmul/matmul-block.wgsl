// The linear layer (lib/matmul.wgsl), one 8 × 8 block of y per invocation, without barriers and shared memory: the form
// for software adapters, where reuse in registers is all there is. Neighbors take neighboring rows of the same outputs.
// Tolerance: 1e-6 of the largest value.

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let row_blocks = (params.rows + 7u) / 8u;
  let blocks = row_blocks * ((params.outputs + 7u) / 8u);
  let first_block = group_index(group) * 64u;
  if (lane == 0u && first_block < blocks) { stamp(min(64u, blocks - first_block)); }
  let block = first_block + lane;
  if (block >= blocks) { return; }
  let r = (block % row_blocks) * 8u;
  let o = (block / row_blocks) * 8u;
  let row = x_rows(r);
  let row_b = x_rows(r + 4u);
  let out = w_rows(o);
  let out_b = w_rows(o + 4u);
  var a0 = vec4<f32>(); var a1 = vec4<f32>(); var a2 = vec4<f32>(); var a3 = vec4<f32>();
  var a4 = vec4<f32>(); var a5 = vec4<f32>(); var a6 = vec4<f32>(); var a7 = vec4<f32>();
  var b0 = vec4<f32>(); var b1 = vec4<f32>(); var b2 = vec4<f32>(); var b3 = vec4<f32>();
  var b4 = vec4<f32>(); var b5 = vec4<f32>(); var b6 = vec4<f32>(); var b7 = vec4<f32>();
  for (var k = 0u; k < params.inputs4; k++) {
    let m = w_quad(out, k);
    let n = w_quad(out_b, k);
    let x0 = x[row.x + k]; a0 += x0 * m; b0 += x0 * n;
    let x1 = x[row.y + k]; a1 += x1 * m; b1 += x1 * n;
    let x2 = x[row.z + k]; a2 += x2 * m; b2 += x2 * n;
    let x3 = x[row.w + k]; a3 += x3 * m; b3 += x3 * n;
    let x4 = x[row_b.x + k]; a4 += x4 * m; b4 += x4 * n;
    let x5 = x[row_b.y + k]; a5 += x5 * m; b5 += x5 * n;
    let x6 = x[row_b.z + k]; a6 += x6 * m; b6 += x6 * n;
    let x7 = x[row_b.w + k]; a7 += x7 * m; b7 += x7 * n;
  }
  store(r, o, a0); store(r, o + 4u, b0);
  store(r + 1u, o, a1); store(r + 1u, o + 4u, b1);
  store(r + 2u, o, a2); store(r + 2u, o + 4u, b2);
  store(r + 3u, o, a3); store(r + 3u, o + 4u, b3);
  store(r + 4u, o, a4); store(r + 4u, o + 4u, b4);
  store(r + 5u, o, a5); store(r + 5u, o + 4u, b5);
  store(r + 6u, o, a6); store(r + 6u, o + 4u, b6);
  store(r + 7u, o, a7); store(r + 7u, o + 4u, b7);
}
