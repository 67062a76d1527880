// Sums over a workgroup of 64, left at place 0 of each array.

var<workgroup> sums: array<vec4<f32>, 64>;
var<workgroup> others: array<vec4<f32>, 64>;
var<workgroup> squares: array<vec4<f32>, 64>;

fn sum_up(lane: u32, a: vec4<f32>, b: vec4<f32>, square: vec4<f32>) {
  sums[lane] = a;
  others[lane] = b;
  squares[lane] = square;
  workgroupBarrier();
  for (var half = 32u; half > 0u; half >>= 1u) {
    if (lane < half) {
      sums[lane] += sums[lane + half];
      others[lane] += others[lane + half];
      squares[lane] += squares[lane + half];
    }
    workgroupBarrier();
  }
}
