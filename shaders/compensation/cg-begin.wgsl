// Masked conjugate gradients, the beginning: for the kept entries x of a row, the residual of H_KK x_K = (H τ)_K at x = τ_K is
// r = mask ∘ q with q = (τ − x)·H; the first direction is p = D⁻¹r, D = diag(H) (Jacobi). p comes in as d = τ − x.
// rho[row] = (Σ r·p, the error d·(q + shift·d)). Cost: 4 multiply-adds per entry. Tolerance: 2e-6 of the largest value.
// Shapes: lib/masked-rows.wgsl; inverse (1/D) [4·width4], q, p, r [rows, 4·width4], rho [rows, 2], f32.

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let first_row = group_index(group) * GROUP_ROWS;
  let row = first_row + lane / ROW_STEP;
  let end = select(0u, params.width4, row < params.rows);
  let begin = row * params.width4;
  var sum = 0.0;
  var error = 0.0;
  for (var i = lane % ROW_STEP; i < end; i += ROW_STEP) {
    let residual = select(vec4<f32>(), q[begin + i], kept4(row, i));
    let direction = inverse[i] * residual;
    let dropped = p[begin + i];
    error += dot(dropped, q[begin + i] + params.shift * dropped);
    r[begin + i] = residual;
    p[begin + i] = direction;
    sum += dot(residual, direction);
  }
  sum = row_sum(lane, sum);
  error = row_sum(lane, error);
  if (row < params.rows && lane % ROW_STEP == 0u) { rho[row] = vec2<f32>(sum, error); }
  if (lane == 0u && first_row < params.rows) { stamp(min(GROUP_ROWS, params.rows - first_row)); }
}
