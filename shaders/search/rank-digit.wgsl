// One digit of the ranks inside rows: a stable counting pass over 4 bits of bits(|τ|), row by row, never over a tensor.
// order_in holds the indices of a row as the digits so far order them (`first`: from the last index to the first, so
// that among equals the lowest index comes out highest); order_out the same after this digit, or with `last` the rank
// 0 … cols − 1 of every element, smallest |τ| first. A workgroup handles a row; lane l counts and moves the l-th of 64
// stretches of it. Integers only. Shapes: whole rows, elements f32 at `slot`; orders elements u32.

var<workgroup> places: array<u32, 1024>; // [digit][lane]: how many, then where the next one goes
var<workgroup> totals: array<u32, 64>;

fn index_at(row: u32, position: u32) -> u32 {
  if (params.first == 1u) { return params.cols - 1u - position; }
  return order_in[row + position];
}

fn digit_of(row: u32, index: u32) -> u32 {
  return ((values[params.slot + row + index] & 0x7fffffffu) >> params.shift) & 15u;
}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let row = group_index(group) * params.cols;
  let inside = row < params.elements;
  let stretch = (params.cols + 63u) / 64u;
  let begin = select(0u, min(lane * stretch, params.cols), inside);
  let end = select(0u, min(begin + stretch, params.cols), inside);
  for (var p = begin; p < end; p++) {
    places[digit_of(row, index_at(row, p)) * 64u + lane]++;
  }
  workgroupBarrier();
  var sum = 0u;
  for (var i = lane * 16u; i < lane * 16u + 16u; i++) { sum += places[i]; }
  totals[lane] = sum;
  workgroupBarrier();
  if (lane == 0u) {
    var before = 0u;
    for (var l = 0u; l < 64u; l++) {
      let n = totals[l];
      totals[l] = before;
      before += n;
    }
  }
  workgroupBarrier();
  var next = totals[lane];
  for (var i = lane * 16u; i < lane * 16u + 16u; i++) {
    let n = places[i];
    places[i] = next;
    next += n;
  }
  workgroupBarrier();
  for (var p = begin; p < end; p++) {
    let index = index_at(row, p);
    let bin = digit_of(row, index) * 64u + lane;
    let place = places[bin];
    places[bin] = place + 1u;
    if (params.last == 1u) {
      order_out[row + index] = place;
    } else {
      order_out[row + place] = index;
    }
  }
  if (lane == 0u && inside) { stamp(params.cols); }
}
