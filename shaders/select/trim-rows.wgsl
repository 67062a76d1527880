// Zeros all but the `keep` largest keys of every row, ties by lowest column, in place: the threshold bit by bit from the top (the
// largest key that at least `keep` keys reach), then in the same way the column up to which keys equal to it stay.
// Counts are f32 sums of ones, exact below 2^24 columns. Cost: (33 + log2 cols) readings of the row.
// Shapes: keys [rows, cols] u32 below 2^31, none of them 0 (column-score.wgsl); lib/row-group.wgsl or lib/row-line.wgsl.

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let first_row = group_index(group) * GROUP_ROWS;
  let row = first_row + lane / ROW_STEP;
  let end = select(0u, params.cols, row < params.rows);
  let begin = row * params.cols;
  let first = lane % ROW_STEP;
  var threshold = 0u;
  for (var bit = 1u << 30u; bit > 0u; bit >>= 1u) {
    var reach = 0.0;
    for (var c = first; c < end; c += ROW_STEP) {
      if (keys[begin + c] >= (threshold | bit)) { reach += 1.0; }
    }
    if (row_sum(lane, reach) >= f32(params.keep)) { threshold |= bit; }
  }
  var above = 0.0;
  for (var c = first; c < end; c += ROW_STEP) {
    if (keys[begin + c] > threshold) { above += 1.0; }
  }
  let quota = f32(params.keep) - row_sum(lane, above);
  // the last equal key that stays has `quota` − 1 before it
  var last = 0u;
  for (var step = 1u << (31u - countLeadingZeros(params.cols)); step > 0u; step >>= 1u) {
    var before = 0.0;
    for (var c = first; c < min(end, last + step); c += ROW_STEP) {
      if (keys[begin + c] == threshold) { before += 1.0; }
    }
    if (row_sum(lane, before) < quota) { last += step; }
  }
  for (var c = first; c < end; c += ROW_STEP) {
    let key = keys[begin + c];
    if (key < threshold || (key == threshold && c > last)) { keys[begin + c] = 0u; }
  }
  if (lane == 0u && first_row < params.rows) { stamp(min(GROUP_ROWS, params.rows - first_row)); }
}
