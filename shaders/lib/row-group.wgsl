// A row per workgroup of 64, each invocation every 64th piece of it: the form for real GPUs.

const ROW_STEP = 64u;
const GROUP_ROWS = 1u;

var<workgroup> partial: array<f32, 64>;

// The sum over a row, in every invocation.
fn row_sum(lane: u32, sum: f32) -> f32 {
  workgroupBarrier();
  partial[lane] = sum;
  workgroupBarrier();
  for (var half = 32u; half > 0u; half >>= 1u) {
    if (lane < half) { partial[lane] += partial[lane + half]; }
    workgroupBarrier();
  }
  return partial[0];
}
