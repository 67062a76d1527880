// y[r, h] = Σ_j p_j · v[j, h / heads_per_key] over the keys j that row r may see, p = softmax of their scores
// cap(scale · q[r, h] · k[j, h / heads_per_key]) + own[h] · j where own is slopes (1); where it is sinks (2), own[h] is one more
// score that takes its share and brings no value (Xiao et al. 2023, arXiv 2309.17453). cap(x) = c · tanh(x / c), none for c = 0.
// Rows come in groups of up to four consecutive ones of a sequence, so that each key and value read serves all four:
// groups[4g …] = (first row, rows, row of keys and values where the sequence begins, position of the first row).
// Shapes: q [·, heads · 4·dim4], k and v [·, heads / heads_per_key · 4·dim4 and 4·value4], own [heads], y [·, heads · 4·value4], f32;
// `room` is the processor's. A workgroup makes up to 256 dimensions of one head of a group, 256 keys at a time, with a running
// largest and sum (Milakov and Gimelshein 2018, arXiv 1805.02867). Tolerance: 3e-6 of the largest value.

const TILE = 256u;
const LEAST = -3.4e38;

// of a tile: scores, then shares, of the four rows; at the end the sums of every invocation
var<workgroup> shares: array<vec4<f32>, 256>;
var<workgroup> tops: array<vec4<f32>, 64>;

fn four(first: u32) -> vec4<u32> {
  return vec4<u32>(first, first + 1u, first + 2u, first + 3u);
}

// First key that a row at this position may see: of a window, or, where its highest bit is set, of a chunk of positions.
fn first_key(position: u32) -> u32 {
  if (params.window >= 0x80000000u) { return position - position % (params.window & 0x7fffffffu); }
  return max(position + 1u, params.window) - params.window;
}

fn capped(s: vec4<f32>) -> vec4<f32> {
  if (params.cap == 0.0) { return s; }
  let x = s / params.cap;
  return params.cap * vec4<f32>(tanh_f32(x.x), tanh_f32(x.y), tanh_f32(x.z), tanh_f32(x.w));
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

  var own_score = 0.0;
  if (params.own_kind > 0u) { own_score = own[head]; }
  let slope = select(0.0, own_score, params.own_kind == 1u);
  var top = vec4<f32>(select(LEAST, own_score, params.own_kind == 2u));
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
      s = capped(s * params.scale) + slope * f32(column);
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
  if (params.own_kind == 2u) { total = exp(own_score - top); }
  for (var i = 0u; i < parts; i++) { total += tops[i * width4 + lane]; }
  for (var r = 0u; r < rows; r++) {
    var mixed = vec4<f32>();
    for (var i = 0u; i < parts; i++) { mixed += shares[4u * (i * width4 + lane) + r]; }
    y[((groups[at] + r) * params.heads + head) * params.value4 + first4 + lane] = mixed / total[r];
  }
}
