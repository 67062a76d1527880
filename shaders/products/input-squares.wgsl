// The diagonal of the Gram matrix: squares[j] += Σ_r x[r, j]² over rows first … first + rows (at most 2048), four columns
// per invocation. Cost: rows · width multiply-adds. Tolerance: 1e-6 of the largest value.
// Shapes: x [·, 4·stride4] f32; squares [4·width4] f32.

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let first_quad = group_index(group) * 64u;
  if (lane == 0u && first_quad < params.width4) { stamp(min(64u, params.width4 - first_quad)); }
  let quad = first_quad + lane;
  if (quad >= params.width4) { return; }
  var sum = vec4<f32>();
  for (var r = 0u; r < params.rows; r++) {
    let v = x[(params.first + r) * params.stride4 + quad];
    sum += v * v;
  }
  squares[quad] += sum;
}
