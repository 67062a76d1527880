// Factors the 32 × 32 tile on the diagonal from column 4·column4 on, in place: A = L·Lᵀ, zeros above. A pivot that is not a
// number, or below `floor` (the damping keeps every true pivot well above it), writes its column + 1 to failed[0], the first
// one only; 1 then takes its place. Found by bits: WGSL may assume that NaN does not exist.
// Cost: 32³/3 multiply-adds in one workgroup, a row per invocation. Tolerance: 2e-6 of the largest value.
// Shapes: factor [width, width] f32; failed [1] u32.

var<workgroup> tile: array<f32, 1024>;

@compute @workgroup_size(32)
fn main(@builtin(local_invocation_index) row: u32) {
  let size = min(32u, params.width - params.column);
  let begin = (params.column + row) * params.width + params.column;
  if (row < size) {
    for (var c = 0u; c < size; c++) { tile[row * 32u + c] = factor[begin + c]; }
  }
  for (var k = 0u; k < size; k++) {
    workgroupBarrier();
    var v = 0.0;
    if (row >= k && row < size) {
      v = tile[row * 32u + k];
      for (var p = 0u; p < k; p++) { v -= tile[row * 32u + p] * tile[k * 32u + p]; }
      tile[row * 32u + k] = v;
    }
    workgroupBarrier();
    var pivot = tile[k * 32u + k];
    // as integers: the sign bit, infinity and NaN are all above the largest finite number
    let bits = bitcast<u32>(pivot) ^ params.stamp.z;
    let bad = bits >= 0x7f800000u || bits < bitcast<u32>(params.floor);
    if (bad) { pivot = 1.0; }
    if (bad && row == k && failed[0] == 0u) { failed[0] = params.column + k + 1u; }
    let root = sqrt(pivot);
    workgroupBarrier();
    if (row == k) { tile[row * 32u + k] = root; }
    if (row > k && row < size) { tile[row * 32u + k] = v / root; }
  }
  workgroupBarrier();
  if (row < size) {
    for (var c = 0u; c < size; c++) { factor[begin + c] = select(tile[row * 32u + c], 0.0, c > row); }
  }
  if (row == 0u) { stamp(1u); }
}
