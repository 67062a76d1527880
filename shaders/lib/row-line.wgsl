// A row per invocation, without barriers: the form for software adapters.

const ROW_STEP = 1u;
const GROUP_ROWS = 64u;

fn row_sum(lane: u32, sum: f32) -> f32 {
  return sum;
}
