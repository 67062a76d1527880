// squares[row] = Σ_c V[row, c]² for the whole rows of a tile (the norm of DoRA, Liu et al. 2024; the host takes the
// root). Lane l sums columns l, l + 64, … in f32, lane sums are added in order: same bits on CPU and GPU, relative
// error below 2^-20 for rows up to 2^16 columns. Shapes: values rows·cols f32 at `slot` → rows f32.

struct Params {
  stamp: vec4<u32>,
  rows: u32,
  cols: u32,
  slot: u32,
}

@group(0) @binding(1) var<storage, read> values: array<f32>;
@group(0) @binding(2) var<storage, read_write> squares: array<f32>;

var<workgroup> partial: array<f32, 64>;

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let row = group_index(group);
  let begin = params.slot + row * params.cols;
  var sum = 0.0;
  if (row < params.rows) {
    for (var c = lane; c < params.cols; c += 64u) {
      let v = values[begin + c];
      sum = exact(sum + exact(v * v));
    }
  }
  partial[lane] = sum;
  workgroupBarrier();
  if (lane == 0u && row < params.rows) {
    var total = 0.0;
    for (var l = 0u; l < 64u; l++) { total = exact(total + partial[l]); }
    squares[row] = total;
    stamp(params.cols);
  }
}
