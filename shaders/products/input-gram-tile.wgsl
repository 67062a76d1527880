// Gram accumulation (lib/input-gram.wgsl) for real GPUs: a workgroup of 256 makes a 64 × 64 tile of S, 4 × 4 per
// invocation, going along the rows in steps of 32 through 16 KiB of shared memory.
// Cost: rows · width²/2 multiply-adds. Tolerance: 1e-6 of the largest value.

// [row][quad of columns]
var<workgroup> i_tile: array<vec4<f32>, 512>;
var<workgroup> j_tile: array<vec4<f32>, 512>;

fn x4(row: u32, quad: u32) -> vec4<f32> {
  if (row >= params.rows || quad >= params.width4) { return vec4<f32>(); }
  return x[(params.first + row) * params.stride4 + params.begin4 + quad];
}

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let side = (params.width4 + 15u) / 16u;
  let index = params.first_tile + group_index(group);
  let tile = lower_tile(min(index, side * (side + 1u) / 2u - 1u));
  let tx = lane % 16u;
  let ty = lane / 16u;
  var sums = mat4x4<f32>();
  for (var begin = 0u; begin < params.rows; begin += 32u) {
    for (var e = ty; e < 32u; e += 16u) {
      i_tile[e * 16u + tx] = x4(begin + e, tile.x * 16u + tx);
      j_tile[e * 16u + tx] = x4(begin + e, tile.y * 16u + tx);
    }
    workgroupBarrier();
    for (var k = 0u; k < 32u; k++) {
      let p = i_tile[k * 16u + ty];
      let u = j_tile[k * 16u + tx];
      sums[0] += p.x * u;
      sums[1] += p.y * u;
      sums[2] += p.z * u;
      sums[3] += p.w * u;
    }
    workgroupBarrier();
  }
  if (index < side * (side + 1u) / 2u) {
    fold(tile.x * 16u + ty, tile.y * 16u + tx, sums);
    if (lane == 0u) { stamp(1u); }
  }
}
