// Attention (lib/attention.wgsl), an invocation for one head of one row, without barriers: the form for software adapters. With a
// running largest and sum, up to 256 dimensions at a time. Tolerance: 3e-6 of the largest value.

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let all = params.groups * params.heads * 4u;
  let first_item = group_index(group) * 64u;
  if (lane == 0u && first_item < all) { stamp(min(64u, all - first_item)); }
  let item = first_item + lane;
  if (item >= all) { return; }
  let head = item % params.heads;
  let r = item / params.heads % 4u;
  let at = 4u * (params.group_begin + item / params.heads / 4u);
  if (r >= groups[at + 1u]) { return; }
  let origin = groups[at + 2u];
  let position = groups[at + 3u] + r;
  let key_heads = params.heads / params.heads_per_key;
  let key_head = head / params.heads_per_key;
  let query = ((groups[at] + r) * params.heads + head) * params.dim4;
  let to = ((groups[at] + r) * params.heads + head) * params.value4;
  let slope = own_of(head, 1u, 0.0);
  let sink = own_of(head, 2u, LEAST);
  var mixed: array<vec4<f32>, 64>;
  for (var first = 0u; first < params.value4; first += 64u) {
    let width4 = min(64u, params.value4 - first);
    for (var i = 0u; i < width4; i++) { mixed[i] = vec4<f32>(); }
    var top = sink;
    var sum = select(0.0, 1.0, params.own_kind == 2u);
    for (var column = first_key(position); column <= position; column++) {
      let row = (origin + column) * key_heads + key_head;
      var products = vec4<f32>();
      for (var i = 0u; i < params.dim4; i++) { products += q[query + i] * k[row * params.dim4 + i]; }
      let score = capped((products.x + products.y + products.z + products.w) * params.scale) + slope * f32(column);
      if (score > top) {
        let shrink = exp(top - score);
        top = score;
        sum *= shrink;
        for (var i = 0u; i < width4; i++) { mixed[i] *= shrink; }
      }
      let share = exp(score - top);
      sum += share;
      for (var i = 0u; i < width4; i++) { mixed[i] += share * v[row * params.value4 + first + i]; }
    }
    for (var i = 0u; i < width4; i++) { y[to + first + i] = mixed[i] / sum; }
  }
}
