// The 32 columns of a step against the factored diagonal tile: X[r, c] = (X[r, c] − Σ_{tile k < c} X[r, k] · L[c, k]) / L[c, c],
// a row per invocation. Cost: rows · 32²/2 multiply-adds. Tolerance: 2e-6 of the largest value.
// Shapes: lib/triangular.wgsl; X and L from lib/factor-own.wgsl or lib/factor-other.wgsl.

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let first = group_index(group) * 64u;
  if (lane == 0u && first < params.rows) { stamp(min(64u, params.rows - first)); }
  if (first + lane >= params.rows) { return; }
  let w = params.width4;
  let begin = (params.first_row + first + lane) * w + params.column4;
  for (var q = 0u; q < tile_quads(); q++) {
    let l = 4u * (params.column4 + q) * w + params.column4;
    var v = x4(begin + q);
    for (var k = 0u; k < q; k++) {
      v -= x4(begin + k) * mat4x4<f32>(l4(l + k), l4(l + w + k), l4(l + 2u * w + k), l4(l + 3u * w + k));
    }
    v.x = v.x / l4(l + q).x;
    let b = l4(l + w + q);
    v.y = (v.y - v.x * b.x) / b.y;
    let c = l4(l + 2u * w + q);
    v.z = (v.z - v.x * c.x - v.y * c.y) / c.z;
    let d = l4(l + 3u * w + q);
    v.w = (v.w - v.x * d.x - v.y * d.y - v.z * d.z) / d.w;
    set_x(begin + q, v);
  }
}
