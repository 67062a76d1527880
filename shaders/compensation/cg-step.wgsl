// Masked conjugate gradients, one step per row (Hestenes and Stiefel 1952): with Hp = mask ∘ (q + shift·p), q = p·H,
// α = ρ / Σ p·Hp, x += α·p, r −= α·Hp, ρ' = Σ r·D⁻¹r, p = D⁻¹r + (ρ'/ρ)·p; the error falls by α·ρ. rho[row] = (ρ, error).
// With `may_rest` a row comes to rest (ρ = 0) once a step lowered its error by no more than 0.05 %.
// Cost: 6 multiply-adds per entry. Tolerance: 5e-6 of the largest value.
// Shapes: lib/masked-rows.wgsl; inverse (1/D) [4·width4], q, p, r, x [rows, 4·width4], rho [rows, 2], f32.

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let first_row = group_index(group) * GROUP_ROWS;
  let row = first_row + lane / ROW_STEP;
  let end = select(0u, params.width4, row < params.rows);
  let begin = row * params.width4;
  var energy = 0.0;
  for (var i = lane % ROW_STEP; i < end; i += ROW_STEP) {
    let v = p[begin + i];
    energy += dot(v, q[begin + i] + params.shift * v);
  }
  energy = row_sum(lane, energy);
  let state = rho[min(row, params.rows - 1u)];
  let before = state.x;
  var alpha = 0.0;
  if (energy > 0.0) { alpha = before / energy; }
  var after = 0.0;
  for (var i = lane % ROW_STEP; i < end; i += ROW_STEP) {
    let v = p[begin + i];
    let hp = select(vec4<f32>(), q[begin + i] + params.shift * v, kept4(row, i));
    x[begin + i] += alpha * v;
    let residual = r[begin + i] - alpha * hp;
    r[begin + i] = residual;
    after += dot(residual, inverse[i] * residual);
  }
  after = row_sum(lane, after);
  var beta = 0.0;
  if (before > 0.0) { beta = after / before; }
  for (var i = lane % ROW_STEP; i < end; i += ROW_STEP) {
    p[begin + i] = inverse[i] * r[begin + i] + beta * p[begin + i];
  }
  if (row < params.rows && lane % ROW_STEP == 0u) {
    let error = max(state.y - alpha * before, 0.0);
    let rests = before == 0.0 || (params.may_rest == 1u && alpha * before <= 0.0005 * error);
    rho[row] = vec2<f32>(select(after, 0.0, rests), error);
  }
  if (lane == 0u && first_row < params.rows) { stamp(min(GROUP_ROWS, params.rows - first_row)); }
}
