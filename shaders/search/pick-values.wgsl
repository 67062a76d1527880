// picked[out + i] = v[picks[i] − first] for the picks that lie in the tile [first, first + elements); the others stay.
// Shapes: values f32 at `slot`, picks count flat indices of the tensor, picked count f32 at `out`.
// Tolerance: 0; bits are copied.

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let begin = group_index(group) * 64u;
  if (begin >= params.count) { return; }
  let i = begin + lane;
  if (i < params.count) {
    let at = picks[i];
    if (at >= params.first && at - params.first < params.elements) {
      picked[params.out + i] = values[params.slot + (at - params.first)];
    }
  }
  if (lane == 0u) { stamp(min(64u, params.count - begin)); }
}
