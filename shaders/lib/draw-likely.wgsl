// Part of draw-token.wgsl: a token among the most probable that make up top_p. Those that may be among them are gathered, and
// each looks how much stands before it.

const MOST = 1024u;

var<workgroup> ids: array<u32, 1024>;
var<workgroup> values: array<f32, 1024>;
var<workgroup> weights: array<f32, 1024>;
var<workgroup> count: atomic<u32>;

// In the order of their probabilities, equal ones by their ids.
fn draw_of_likely(row: u32, lane: u32, top: f32, total: f32, u: f32) {
  let sums_at = row * params.segments * 2u;
  // those below weigh less together than what top_p leaves out
  let least = 0.999 * (1.0 - params.top_p) * total / f32(params.vocab);
  for (var s = 0u; s < params.segments; s++) {
    if (exp((warm[sums_at + 2u * s] - top) * params.inverse) < least) { continue; }
    for (var c = s * 1024u + lane; c < min(params.vocab, (s + 1u) * 1024u); c += LANES) {
      let value = logits[row * params.vocab + c];
      let weight = exp((value - top) * params.inverse);
      if (weight < least) { continue; }
      let slot = atomicAdd(&count, 1u);
      if (slot >= MOST) { continue; }
      ids[slot] = c;
      values[slot] = value;
      weights[slot] = weight;
    }
  }
  workgroupBarrier();
  let found = atomicLoad(&count);
  let n = select(found, 0u, found > MOST);
  let edge = EDGE * total;
  let bound = params.top_p * total;
  var before: array<f32, 4>;
  // of those that are kept for sure, and of those that may be
  var kept = vec2<f32>();
  for (var k = 0u; k < 4u; k++) {
    let i = lane + k * LANES;
    if (i >= n) { break; }
    var ahead = 0.0;
    for (var j = 0u; j < n;) {
      var some = 0.0;
      for (let to = min(n, j + 32u); j < to; j++) {
        let first = values[j] > values[i] || (values[j] == values[i] && ids[j] < ids[i]);
        some += select(0.0, weights[j], first);
      }
      ahead += some;
    }
    before[k] = ahead;
    kept += select(vec2<f32>(), vec2<f32>(weights[i]), vec2<f32>(ahead) < vec2<f32>(bound - edge, bound + edge));
  }
  partial[lane] = kept;
  workgroupBarrier();
  var mass = vec2<f32>();
  for (var i = 0u; i < min(n, LANES); i++) { mass += partial[i]; }
  for (var k = 0u; k < 4u; k++) {
    let i = lane + k * LANES;
    if (i >= n) { break; }
    let into = u * mass - before[k];
    let is_kept = before[k] == 0.0 || before[k] < bound - edge;
    if (is_kept && into.x > edge && weights[i] - into.y > edge) { atomicStore(&chosen, ids[i]); }
  }
}
