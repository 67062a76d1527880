// mask[r, w] bit b = 1 where the key of column 32w + b is not 0: the elements kept. Bits past the last column are 0. Keys lie as column-score.wgsl leaves them. Integers only.
// Shapes: keys rows·cols u32 → mask [rows, ⌈cols/32⌉] u32.

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let row_words = (params.cols + 31u) / 32u;
  let words = params.rows * row_words;
  let begin = group_index(group) * 64u;
  if (lane == 0u && begin < words) { stamp(min(64u, words - begin)); }
  if (begin + lane >= words) { return; }
  let r = (begin + lane) / row_words;
  let c0 = ((begin + lane) % row_words) * 32u;
  var bits = 0u;
  for (var c = c0; c < min(c0 + 32u, params.cols); c++) {
    let first = c - c % params.block;
    let width = min(params.block, params.cols - first);
    if (keys[first * params.rows + r * width + c - first] != 0u) { bits |= 1u << (c - c0); }
  }
  mask[begin + lane] = bits;
}
