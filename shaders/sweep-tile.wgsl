// SparseGPT's sweep (Frantar and Alistarh 2023) over the 32 columns from 4·column4 on, a row per invocation. From left to right
// w_c = x_c − Σ_{k < c} e_k · U[k, c]; an entry the mask drops leaves the error e_c = w_c / U_cc to the columns after it, a kept one
// takes w_c and leaves none. triangular-panel.wgsl has subtracted the columns before the tile. On leaving x holds e, `kept` w.
// Cost: rows · 32²/2 multiply-adds. Tolerance: 2e-6 of the largest value.
// Shapes: lib/masked-rows.wgsl; factor Uᵀ [4·width4, 4·width4], x, kept [rows, 4·width4], f32.

@group(0) @binding(2) var<storage, read> factor: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read_write> x: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read_write> kept: array<vec4<f32>>;

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let first = group_index(group) * 64u;
  if (lane == 0u && first < params.rows) { stamp(min(64u, params.rows - first)); }
  let row = first + lane;
  if (row >= params.rows) { return; }
  let w = params.width4;
  let begin = row * w + params.column4;
  for (var q = 0u; q < min(8u, w - params.column4); q++) {
    let l = 4u * (params.column4 + q) * w + params.column4;
    var v = x[begin + q];
    for (var k = 0u; k < q; k++) {
      v -= x[begin + k] * mat4x4<f32>(factor[l + k], factor[l + w + k], factor[l + 2u * w + k], factor[l + 3u * w + k]);
    }
    let keep = kept4(row, params.column4 + q);
    let a = factor[l + q];
    let b = factor[l + w + q];
    let c = factor[l + 2u * w + q];
    let d = factor[l + 3u * w + q];
    var e = vec4<f32>();
    if (!keep.x) { e.x = v.x / a.x; }
    v.y -= e.x * b.x;
    if (!keep.y) { e.y = v.y / b.y; }
    v.z -= e.x * c.x + e.y * c.y;
    if (!keep.z) { e.z = v.z / c.z; }
    v.w -= e.x * d.x + e.y * d.y + e.z * d.z;
    if (!keep.w) { e.w = v.w / d.w; }
    kept[begin + q] = select(vec4<f32>(), v, keep);
    x[begin + q] = e;
  }
}
