// Attention (lib/attention.wgsl), a workgroup for up to 256 dimensions of one head of a group: the form for real GPUs. 256 keys at a
// time, with a running largest and sum (Milakov and Gimelshein 2018, arXiv 1805.02867). Tolerance: 3e-6 of the largest value.

const TILE = 256u;

// of a tile: scores, then shares, of the four rows; at the end the sums of every invocation
var<workgroup> shares: array<vec4<f32>, 256>;
var<workgroup> tops: array<vec4<f32>, 64>;

fn four(first: u32) -> vec4<u32> {
  return vec4<u32>(first, first + 1u, first + 2u, first + 3u);
}

fn capped4(s: vec4<f32>) -> vec4<f32> {
  if (params.cap == 0.0) { return s; }
  return vec4<f32>(capped(s.x), capped(s.y), capped(s.z), capped(s.w));
}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let pieces = (params.value4 + 63u) / 64u;
  let index = group_index(group);
  if (index >= params.groups * params.heads * pieces) { return; }
  let at = 4u * (params.group_begin + index / pieces / params.heads);
  let head = (index / pieces) % params.heads;
  let rows = groups[at + 1u];
  let origin = groups[at + 2u];
  let position = groups[at + 3u];
  let each = min(four(0u), vec4<u32>(rows - 1u));
  let last = position + each;
  let low = vec4<u32>(first_key(last.x), first_key(last.y), first_key(last.z), first_key(last.w));
  let key_heads = params.heads / params.heads_per_key;
  let key_head = head / params.heads_per_key;
  let query = ((groups[at] + each) * params.heads + head) * params.dim4;

  // the dimensions of this workgroup, and the part of the keys that this invocation mixes for one four of them
  let first4 = 64u * (index % pieces);
  let width4 = min(64u, params.value4 - first4);
  let parts = 64u / width4;
  let part = lane / width4;
  let value = key_head * params.value4 + first4 + lane % width4;

  let slope = own_of(head, 1u, 0.0);
  let sink = own_of(head, 2u, LEAST);
  var top = vec4<f32>(sink);
  var sum = vec4<f32>();
  var y0 = vec4<f32>();
  var y1 = vec4<f32>();
  var y2 = vec4<f32>();
  var y3 = vec4<f32>();
  let end = position + rows;
  for (var base = low.x; base < end; base += TILE) {
    let count = min(TILE, end - base);
    var here = vec4<f32>(LEAST);
    for (var t = lane; t < count; t += 64u) {
      let column = base + t;
      let key = ((origin + column) * key_heads + key_head) * params.dim4;
      var s = vec4<f32>();
      if (rows == 1u) {
        for (var i = 0u; i < params.dim4; i++) { s.x += dot(q[query.x + i], k[key + i]); }
      } else {
        for (var i = 0u; i < params.dim4; i++) {
          s += k[key + i] * mat4x4<f32>(q[query.x + i], q[query.y + i], q[query.z + i], q[query.w + i]);
        }
      }
      s = capped4(s * params.scale) + slope * f32(column);
      let seen = (vec4<u32>(column) >= low) & (vec4<u32>(column) <= last);
      s = select(vec4<f32>(LEAST), s, seen);
      shares[t] = s;
      here = max(here, s);
    }
    tops[lane] = here;
    workgroupBarrier();
    var next = top;
    for (var i = 0u; i < min(64u, count); i++) { next = max(next, tops[i]); }
    let shrink = exp(top - next);
    top = next;
    sum *= shrink;
    y0 *= shrink.x;
    y1 *= shrink.y;
    y2 *= shrink.z;
    y3 *= shrink.w;
    for (var t = lane; t < count; t += 64u) {
      let s = shares[t];
      shares[t] = select(exp(s - top), vec4<f32>(), s <= vec4<f32>(LEAST));
    }
    workgroupBarrier();
    if (part < parts) {
      for (var t = part; t < count; t += parts) {
        let p = shares[t];
        let mixed = v[(origin + base + t) * key_heads * params.value4 + value];
        sum += p;
        y0 += p.x * mixed;
        if (rows > 1u) {
          y1 += p.y * mixed;
          y2 += p.z * mixed;
          y3 += p.w * mixed;
        }
      }
    }
    workgroupBarrier();
  }

  shares[4u * lane] = y0;
  shares[4u * lane + 1u] = y1;
  shares[4u * lane + 2u] = y2;
  shares[4u * lane + 3u] = y3;
  tops[lane] = sum;
  workgroupBarrier();
  if (lane == 0u) { stamp(1u); }
  if (lane >= width4) { return; }
  var total = vec4<f32>();
  if (params.own_kind == 2u) { total = exp(sink - top); }
  for (var i = 0u; i < parts; i++) { total += tops[i * width4 + lane]; }
  for (var r = 0u; r < rows; r++) {
    var mixed = vec4<f32>();
    for (var i = 0u; i < parts; i++) { mixed += shares[4u * (i * width4 + lane) + r]; }
    y[((groups[at] + r) * params.heads + head) * params.value4 + first4 + lane] = mixed / total[r];
  }
}
