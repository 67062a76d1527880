// LoRA update of a tile, never materialized elsewhere: Δ[row, col] = scale · Σ_k L[row, k] · R[k, col].
// left: L [rows, rank] row-major, right: R [rank, cols] in panels of eight columns, each [rank][8], f32; the tile covers flat
// elements first … first + elements − 1 of a [rows, cols] tensor. `add` = 1 adds Δ to values, 0 stores it.
// The sum runs over k in order, every product and sum rounded to f32: same bits on CPU and GPU.

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let begin = group_index(group) * 4096u;
  let end = min(begin + 4096u, params.elements);
  for (var e = begin + lane; e < end; e += 64u) {
    let flat = params.first + e;
    let row = flat / params.cols;
    let col = flat - row * params.cols;
    var sum = 0.0;
    for (var k = 0u; k < params.rank; k++) {
      let r = right[((col >> 3u) * params.rank + k) * 8u + (col & 7u)];
      sum = exact(sum + exact(left[row * params.rank + k] * r));
    }
    let delta = exact(sum * params.scale);
    if (params.add == 1u) {
      values[params.slot + e] = exact(values[params.slot + e] + delta);
    } else {
      values[params.slot + e] = delta;
    }
  }
  if (lane == 0u && begin < end) { stamp(end - begin); }
}
