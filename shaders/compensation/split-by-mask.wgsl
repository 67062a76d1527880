// Divides a chunk of rows by the mask, in place: x has the masked entries, dropped the rest; zeros elsewhere. Tolerance: 0.
// Shapes: lib/masked-rows.wgsl; x, dropped [rows, 4·width4] f32.

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let n = params.rows * params.width4;
  let begin = min(group_index(group) * 1024u, n);
  let end = min(begin + 1024u, n);
  for (var e = begin + lane; e < end; e += 64u) {
    let keep = kept4(e / params.width4, e % params.width4);
    let v = x[e];
    x[e] = select(vec4<f32>(), v, keep);
    dropped[e] = select(v, vec4<f32>(), keep);
  }
  if (lane == 0u && begin < end) { stamp(end - begin); }
}
