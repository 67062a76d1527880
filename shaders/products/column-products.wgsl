// Products of `count` matrices column by column, over blocks of 64 rows: sums[(block · pairs + p) · cols + c] =
// Σ_{64 rows} v_i[row, c] · v_j[row, c] for the pairs i ≤ j in row order. The host adds the blocks in f64.
// Rows are added in order, every product and sum one rounding: same bits on CPU and GPU.
// Shapes: count matrices of elements = rows·cols f32, `stride` apart, beginning at `slot`
// → ⌈rows/64⌉ · pairs · cols f32; one workgroup handles 64 columns of a block.

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let chunks = (params.cols + 63u) / 64u;
  let block = group_index(group) / chunks;
  let first_column = (group_index(group) % chunks) * 64u;
  let c = first_column + lane;
  let rows = params.elements / params.cols;
  let begin = min(block * 64u, rows);
  let end = min(begin + 64u, rows);
  let pairs = params.count * (params.count + 1u) / 2u;
  if (c < params.cols && begin < end) {
    var p = 0u;
    for (var i = 0u; i < params.count; i++) {
      for (var j = i; j < params.count; j++) {
        var sum = 0.0;
        for (var row = begin; row < end; row++) {
          let e = params.slot + row * params.cols + c;
          sum = exact(sum + exact(values[e + i * params.stride] * values[e + j * params.stride]));
        }
        sums[(block * pairs + p) * params.cols + c] = sum;
        p++;
      }
    }
  }
  if (lane == 0u && begin < end) { stamp((end - begin) * min(64u, params.cols - first_column)); }
}
