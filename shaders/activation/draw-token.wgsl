// The next token of every row of logits, as src/backend/sampler.ts chooses it: the first of the largest (inverse = 0), or by a
// random number u at temperature 1 / inverse among all (top_p = 1) or the most probable that make up top_p. f32 here, f64 there:
// where a difference of EDGE · Σ may let u or top_p choose another token, more than 1024 are as probable as those that top_p
// may reach, a count of `counts` is not zero or a sum not finite, the word is 0xffffffff and the host looks at the logits.
// sums and warm [rows, segments, 2]: (max, Σ e^(x − max)) and (max, Σ e^(inverse · (x − max))) of each 1024 columns (log-sum.wgsl).
// Among the most probable: lib/draw-likely.wgsl. Shapes: logits [rows, vocab], random [rows, 2], counts [layers], drawn [rows]:
// the id in its id_bits lowest bits, above it −ln of its probability at temperature 1 in steps of 1 / steps. A workgroup a row.
// Tolerance: half a step, beside 3e-6 of the largest probability.

const LANES = 256u;
const EDGE = 1e-5;
const NONE = 0xffffffffu;

var<workgroup> chosen: atomic<u32>;
var<workgroup> partial: array<vec2<f32>, 256>;
var<workgroup> segment: u32;
var<workgroup> left: f32;

fn is_finite(x: f32) -> bool {
  return (bitcast<u32>(x) & 0x7f800000u) != 0x7f800000u;
}

// Where the tokens of one segment end, in their order: of all tokens `left` is the share of u that falls into it.
fn draw_of_all(row: u32, lane: u32, top: f32, total: f32, u: f32) {
  let sums_at = row * params.segments * 2u;
  if (lane == 0u) {
    var ahead = u * total;
    var s = 0u;
    for (; s + 1u < params.segments; s++) {
      let own = warm[sums_at + 2u * s + 1u] * exp((warm[sums_at + 2u * s] - top) * params.inverse);
      if (ahead < own) { break; }
      ahead -= own;
    }
    segment = s;
    left = ahead;
  }
  workgroupBarrier();
  let begin = segment * 1024u + 4u * lane;
  let end = min(params.vocab, min(begin + 4u, (segment + 1u) * 1024u));
  var sum = 0.0;
  for (var c = begin; c < end; c++) { sum += exp((logits[row * params.vocab + c] - top) * params.inverse); }
  partial[lane].x = sum;
  workgroupBarrier();
  if (lane > 0u) { return; }
  var ahead = left;
  var part = 0u;
  for (; part + 1u < LANES && ahead >= partial[part].x; part++) { ahead -= partial[part].x; }
  let first = segment * 1024u + 4u * part;
  for (var c = first; c < min(params.vocab, first + 4u); c++) {
    let own = exp((logits[row * params.vocab + c] - top) * params.inverse);
    if (ahead < own) {
      if (min(ahead, own - ahead) > EDGE * total) { atomicStore(&chosen, c); }
      break;
    }
    ahead -= own;
  }
}

fn first_largest(row: u32, lane: u32, top: f32) {
  let sums_at = row * params.segments * 2u;
  var s = 0u;
  for (; s + 1u < params.segments && sums[sums_at + 2u * s] != top; s++) {}
  for (var c = s * 1024u + lane; c < min(params.vocab, (s + 1u) * 1024u); c += LANES) {
    if (logits[row * params.vocab + c] == top) { atomicMin(&chosen, c); }
  }
}

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let row = group_index(group);
  if (row >= params.rows) { return; }
  let sums_at = row * params.segments * 2u;
  var top = sums[sums_at];
  for (var s = 1u; s < params.segments; s++) { top = max(top, sums[sums_at + 2u * s]); }
  var all = 0.0;
  var total = 0.0;
  for (var s = 0u; s < params.segments; s++) {
    all += sums[sums_at + 2u * s + 1u] * exp(sums[sums_at + 2u * s] - top);
    total += warm[sums_at + 2u * s + 1u] * exp((warm[sums_at + 2u * s] - top) * params.inverse);
  }
  if (lane == 0u) {
    atomicStore(&chosen, NONE);
    atomicStore(&count, 0u);
  }
  workgroupBarrier();
  let u = f32(random[2u * row]) / 4294967296.0;
  if (params.inverse == 0.0) { first_largest(row, lane, top); }
  else if (params.top_p == 1.0) { draw_of_all(row, lane, top, total, u); }
  else { draw_of_likely(row, lane, top, total, u); }
  workgroupBarrier();
  if (lane > 0u) { return; }
  stamp(1u);
  let id = atomicLoad(&chosen);
  drawn[row] = NONE;
  if (id == NONE || !is_finite(top) || !is_finite(all)) { return; }
  for (var i = 0u; i < params.layers; i++) {
    if (counts[i] > 0u) { return; }
  }
  let step = round((log(all) + top - logits[row * params.vocab + id]) * params.steps);
  if (step < f32(NONE >> params.id_bits)) { drawn[row] = (u32(max(step, 0.0)) << params.id_bits) | id; }
}
