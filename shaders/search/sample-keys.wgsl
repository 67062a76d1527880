// Every `step`-th magnitude of a tensor: keys[out + i] = bits(|τ[i·step]|) for the flat indices i·step inside the tile, which
// begins at index `first`. Shapes: elements f32 at `slot` → one u32 per index. No arithmetic.

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let begin = min(group_index(group) * 4096u, params.elements);
  let end = min(begin + 4096u, params.elements);
  let i0 = (params.first + begin + params.step - 1u) / params.step;
  let i1 = (params.first + end + params.step - 1u) / params.step;
  for (var i = i0 + lane; i < i1; i += 64u) {
    keys[params.out + i] = values[params.slot + i * params.step - params.first] & 0x7fffffffu;
  }
  if (lane == 0u && begin < end) { stamp(end - begin); }
}
