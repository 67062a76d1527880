// A state h [dim, states] per head, along every piece of a sequence (pieces_at as in causal-conv.wgsl):
//   h ← a ∘ h + u Bᵀ,  y = y_scale · h C + D · x
// kind 0, state space (Mamba: Gu and Dao 2023; Mamba-2: Dao and Gu 2024): s = softplus(t + bias) within low … high,
//   a = e^(s·A), u = s · x.  kind 1, gated delta rule (Yang et al. 2024): the same a, u = β (x − (a ∘ h) B) with
//   β = beta_scale · σ(t[beta_begin + head]).  kind 2, decaying attention (Qin et al. 2024): a = e^A, u = x.
// constants: A [heads, decays] (decays 1 or states), bias [heads], D [heads]. `heads_per_group` heads have B and C in common.
// Shapes: x [rows, x_stride], bc [rows, bc_stride], t [rows, t_stride], state [slots, heads, dim, states],
// y [rows, y_stride], f32. One invocation a row of h. Tolerance: 3e-6 of the largest value.

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let items = params.heads * params.dim;
  let all = params.pieces * items;
  let first_item = group_index(group) * 64u;
  if (lane == 0u && first_item < all) { stamp(min(64u, all - first_item)); }
  if (first_item + lane >= all) { return; }
  let p = 4u * ((first_item + lane) / items);
  let item = (first_item + lane) % items;
  let head = item / params.dim;
  let line = (pieces_at[p + 2u] * items + item) * params.states;
  let bias = params.heads * params.decays;
  if (pieces_at[p + 3u] == 1u) {
    for (var n = 0u; n < params.states; n++) { state[line + n] = 0.0; }
  }
  for (var r = pieces_at[p]; r < pieces_at[p] + pieces_at[p + 1u]; r++) {
    let shared_row = r * params.bc_stride + (head / params.heads_per_group) * params.states;
    let b = shared_row + params.b_begin;
    let c = shared_row + params.c_begin;
    let v = x[r * params.x_stride + params.x_begin + item];
    var step = 1.0;
    if (params.kind != 2u) {
      step = softplus_f32(t[r * params.t_stride + params.t_begin + head] + constants[bias + head]);
      step = clamp(step, params.low, params.high);
    }
    var decay = exp(step * constants[head * params.decays]);
    var seen = 0.0;
    for (var n = 0u; n < params.states; n++) {
      if (params.decays > 1u) { decay = exp(step * constants[head * params.decays + n]); }
      let h = state[line + n] * decay;
      state[line + n] = h;
      seen += h * bc[b + n];
    }
    var u = step * v;
    if (params.kind == 1u) {
      u = params.beta_scale * sigmoid_f32(t[r * params.t_stride + params.beta_begin + head]) * (v - seen);
    }
    var sum = 0.0;
    for (var n = 0u; n < params.states; n++) {
      let h = state[line + n] + u * bc[b + n];
      state[line + n] = h;
      sum += h * bc[c + n];
    }
    y[r * params.y_stride + item] = params.y_scale * sum + constants[bias + params.heads + head] * v;
  }
}
