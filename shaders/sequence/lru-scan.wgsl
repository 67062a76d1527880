// Real-gated linear recurrent unit (De et al. 2024, arXiv 2402.19427), along every piece (pieces_at as in causal-conv.wgsl):
//   i = σ(W_i x + b_i), r = σ(W_r x + b_r), ln a = −8 · r · softplus(rate),  h ← a h + √(1 − a²) · i x,  y = h
// The gates' W are block diagonal; at the first position of a sequence the root counts as 1.
// Shapes: x [rows, x_stride], gates [2, width / block, block (in), block (out)] and biases [2, width], input gate first,
// rates [width], state [slots, width], y [rows, y_stride], f32. One invocation a channel. Tolerance: 3e-6 of the largest value.

// √(1 − e^(2x)) for x ≤ 0
fn root_of_rest(x: f32) -> f32 {
  return sqrt(-expm1_f32(2.0 * x));
}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let all = params.pieces * params.width;
  let first_item = group_index(group) * 64u;
  if (lane == 0u && first_item < all) { stamp(min(64u, all - first_item)); }
  if (first_item + lane >= all) { return; }
  let p = 4u * ((first_item + lane) / params.width);
  let c = (first_item + lane) % params.width;
  let begin = (c / params.block) * params.block;
  let column = begin * params.block + c % params.block;
  let fresh = pieces_at[p + 3u] == 1u;
  let at = pieces_at[p + 2u] * params.width + c;
  var h = 0.0;
  if (!fresh) { h = state[at]; }
  for (var r = 0u; r < pieces_at[p + 1u]; r++) {
    let row = pieces_at[p] + r;
    var input = biases[c];
    var forget = biases[params.width + c];
    for (var i = 0u; i < params.block; i++) {
      let v = x[row * params.x_stride + begin + i];
      input += v * gates[column + i * params.block];
      forget += v * gates[params.width * params.block + column + i * params.block];
    }
    let log_a = -8.0 * sigmoid_f32(forget) * softplus_f32(rates[c]);
    let size = select(root_of_rest(log_a), 1.0, fresh && r == 0u);
    h = exp(log_a) * h + size * sigmoid_f32(input) * x[row * params.x_stride + c];
    y[row * params.y_stride + c] = h;
  }
  state[at] = h;
}
