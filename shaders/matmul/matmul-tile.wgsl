// The linear layer (lib/matmul.wgsl) for real GPUs: a workgroup of 256 makes a 64 × 64 tile of y, 4 × 4 per invocation,
// going along k in steps of 32 through 16 KiB of shared memory. Both operands are stored transposed there, so that an
// invocation reads four rows and four outputs of one k with two loads.
// Tolerance: 1e-6 of the largest value.

// [k][four rows], [k][four outputs]
var<workgroup> x_tile: array<vec4<f32>, 512>;
var<workgroup> w_tile: array<vec4<f32>, 512>;

fn x4(row: u32, k4: u32) -> vec4<f32> {
  if (row >= params.rows || k4 >= params.inputs4) { return vec4<f32>(); }
  return x[row * params.x_stride4 + k4];
}

fn w4(out: u32, k4: u32) -> vec4<f32> {
  if (out >= params.outputs || k4 >= params.inputs4) { return vec4<f32>(); }
  return weight4((params.w_first + out) * params.inputs4 + k4);
}

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let row_tiles = (params.rows + 63u) / 64u;
  let tiles = row_tiles * ((params.outputs + 63u) / 64u);
  let tile = group_index(group);
  let r0 = (tile % row_tiles) * 64u;
  let o0 = (tile / row_tiles) * 64u;
  let tx = lane % 16u;
  let ty = lane / 16u;
  var a0 = vec4<f32>();
  var a1 = vec4<f32>();
  var a2 = vec4<f32>();
  var a3 = vec4<f32>();
  // each invocation brings one 4 × 4 block: the first half of the group of x, the second of w
  let part = lane % 128u;
  let quad = part / 8u;
  let step = part % 8u;
  for (var k0 = 0u; k0 < params.inputs4; k0 += 8u) {
    let k4 = k0 + step;
    if (lane < 128u) {
      let r = r0 + quad * 4u;
      let t = transpose(mat4x4<f32>(x4(r, k4), x4(r + 1u, k4), x4(r + 2u, k4), x4(r + 3u, k4)));
      for (var i = 0u; i < 4u; i++) { x_tile[(step * 4u + i) * 16u + quad] = t[i]; }
    } else {
      let o = o0 + quad * 4u;
      let t = transpose(mat4x4<f32>(w4(o, k4), w4(o + 1u, k4), w4(o + 2u, k4), w4(o + 3u, k4)));
      for (var i = 0u; i < 4u; i++) { w_tile[(step * 4u + i) * 16u + quad] = t[i]; }
    }
    workgroupBarrier();
    for (var k = 0u; k < 32u; k++) {
      let rows = x_tile[k * 16u + ty];
      let outs = w_tile[k * 16u + tx];
      a0 += rows.x * outs;
      a1 += rows.y * outs;
      a2 += rows.z * outs;
      a3 += rows.w * outs;
    }
    workgroupBarrier();
  }
  if (tile < tiles) {
    let r = r0 + ty * 4u;
    let o = o0 + tx * 4u;
    store(r, o, a0);
    store(r + 1u, o, a1);
    store(r + 2u, o, a2);
    store(r + 3u, o, a3);
    if (lane == 0u) { stamp(1u); }
  }
}
