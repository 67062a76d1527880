// One step of a left-looking Cholesky factoring or triangular solve: X[r, c] -= Σ_{k < 4·column4} X[r, k] · L[c, k] for the
// 32 columns c from 4·column4 on, 4 rows × 4 columns per invocation, without barriers (a dispatch is the barrier).
// Cost: rows · 32 · 4·column4 multiply-adds. Tolerance: 2e-6 of the largest value.
// Shapes: lib/triangular.wgsl; X and L from lib/factor-own.wgsl or lib/factor-other.wgsl.

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let quads = tile_quads();
  let blocks = ((params.rows + 3u) / 4u) * quads;
  let first = group_index(group) * 64u;
  if (lane == 0u && first < blocks) { stamp(min(64u, blocks - first)); }
  let block = first + lane;
  if (block >= blocks) { return; }
  let w = params.width4;
  let c4 = params.column4 + block % quads;
  let r = (block / quads) * 4u;
  // past the edge the last row is computed again and not stored
  let row = (params.first_row + min(vec4<u32>(r, r + 1u, r + 2u, r + 3u), vec4<u32>(params.rows - 1u))) * w;
  let out = 4u * c4 * w;
  var s0 = vec4<f32>();
  var s1 = vec4<f32>();
  var s2 = vec4<f32>();
  var s3 = vec4<f32>();
  for (var k = select(0u, (params.first_row + r) / 4u, params.unit == 1u); k < params.column4; k++) {
    let m = mat4x4<f32>(l4(out + k), l4(out + w + k), l4(out + 2u * w + k), l4(out + 3u * w + k));
    s0 += x4(row.x + k) * m;
    s1 += x4(row.y + k) * m;
    s2 += x4(row.z + k) * m;
    s3 += x4(row.w + k) * m;
  }
  set_x(row.x + c4, x4(row.x + c4) - s0);
  if (r + 1u < params.rows) { set_x(row.y + c4, x4(row.y + c4) - s1); }
  if (r + 2u < params.rows) { set_x(row.z + c4, x4(row.z + c4) - s2); }
  if (r + 3u < params.rows) { set_x(row.w + c4, x4(row.w + c4) - s3); }
}
