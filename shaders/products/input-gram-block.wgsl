// Gram accumulation (lib/input-gram.wgsl), one 8 × 8 block of S per invocation, without barriers: the form for software
// adapters. Cost: rows · width²/2 multiply-adds. Tolerance: 1e-6 of the largest value.

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let side = (params.width4 + 1u) / 2u;
  let tiles = side * (side + 1u) / 2u;
  let first = params.first_tile + group_index(group) * 64u;
  if (lane == 0u && first < tiles) { stamp(min(64u, tiles - first)); }
  if (first + lane >= tiles) { return; }
  let tile = lower_tile(first + lane);
  let i = 2u * tile.x;
  let j = 2u * tile.y;
  let last = params.begin4 + params.width4 - 1u;
  let row = params.first * params.stride4;
  let i0 = row + params.begin4 + i;
  let i1 = row + min(params.begin4 + i + 1u, last);
  let j0 = row + params.begin4 + j;
  let j1 = row + min(params.begin4 + j + 1u, last);
  var a = mat4x4<f32>();
  var b = mat4x4<f32>();
  var c = mat4x4<f32>();
  var d = mat4x4<f32>();
  for (var k = 0u; k < params.rows * params.stride4; k += params.stride4) {
    let p = x[i0 + k];
    let q = x[i1 + k];
    let u = x[j0 + k];
    let v = x[j1 + k];
    a[0] += p.x * u; a[1] += p.y * u; a[2] += p.z * u; a[3] += p.w * u;
    b[0] += p.x * v; b[1] += p.y * v; b[2] += p.z * v; b[3] += p.w * v;
    c[0] += q.x * u; c[1] += q.y * u; c[2] += q.z * u; c[3] += q.w * u;
    d[0] += q.x * v; d[1] += q.y * v; d[2] += q.z * v; d[3] += q.w * v;
  }
  fold(i, j, a);
  fold(i, j + 1u, b);
  fold(i + 1u, j, c);
  fold(i + 1u, j + 1u, d);
}
