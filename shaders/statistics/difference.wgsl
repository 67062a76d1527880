// Two versions of a tile in one pass: Δ = b − a is written out where `keep` is 1, and every segment (at most 4096 columns of one row) gives
// nine words: Σ|Δ|, ΣΔ², Σa², Σb², Σab, max|Δ| as f32, then the numbers of elements with |Δ| > threshold, with opposite
// signs (zeros have none), and with different bits. The host adds segments in f64.
// Inside a segment lane l sums elements l, l + 64, … in f32 and lane sums are added in order: same bits on CPU and GPU.
// Shapes: values rows·cols f32 at word `a` and at word `b` → delta rows·cols f32 at `out`, sums rows·⌈cols/4096⌉·9.

var<workgroup> partial: array<f32, 384>;
var<workgroup> counts: array<u32, 192>;

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let segments = (params.cols + 4095u) / 4096u;
  let index = group_index(group);
  let row = index / segments;
  let first = (index % segments) * 4096u;
  let n = select(0u, min(4096u, params.cols - first), row < params.rows);
  let begin = row * params.cols + first;
  var absolute = 0.0;
  var square = 0.0;
  var square_a = 0.0;
  var square_b = 0.0;
  var product = 0.0;
  var largest = 0.0;
  var changed = 0u;
  var flipped = 0u;
  var different = 0u;
  for (var e = begin + lane; e < begin + n; e += 64u) {
    let p = values[params.a + e];
    let q = values[params.b + e];
    let x = bitcast<f32>(p);
    let y = bitcast<f32>(q);
    let d = exact(y - x);
    let size = abs(d);
    if (params.keep != 0u) { delta[params.out + e] = d; }
    absolute = exact(absolute + size);
    square = exact(square + exact(d * d));
    square_a = exact(square_a + exact(x * x));
    square_b = exact(square_b + exact(y * y));
    product = exact(product + exact(x * y));
    largest = max(largest, size);
    changed += select(0u, 1u, size > params.threshold);
    let opposite = ((p ^ q) & 0x80000000u) != 0u;
    flipped += select(0u, 1u, opposite && (p & 0x7fffffffu) != 0u && (q & 0x7fffffffu) != 0u);
    different += select(0u, 1u, p != q);
  }
  partial[lane] = absolute;
  partial[64u + lane] = square;
  partial[128u + lane] = square_a;
  partial[192u + lane] = square_b;
  partial[256u + lane] = product;
  partial[320u + lane] = largest;
  counts[lane] = changed;
  counts[64u + lane] = flipped;
  counts[128u + lane] = different;
  workgroupBarrier();
  if (n == 0u) { return; }
  let out = index * 9u + lane;
  if (lane < 5u) {
    var total = 0.0;
    for (var l = 0u; l < 64u; l++) { total = exact(total + partial[lane * 64u + l]); }
    sums[out] = bitcast<u32>(total);
  } else if (lane == 5u) {
    var most = 0.0;
    for (var l = 0u; l < 64u; l++) { most = max(most, partial[320u + l]); }
    sums[out] = bitcast<u32>(most);
  } else if (lane < 9u) {
    var total = 0u;
    for (var l = 0u; l < 64u; l++) { total += counts[(lane - 6u) * 64u + l]; }
    sums[out] = total;
  } else if (lane == 9u) {
    stamp(n);
  }
}
