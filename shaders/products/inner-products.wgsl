// Sums of all pairwise products of `count` vectors over runs of `run` elements: sums[r · pairs + p] =
// Σ_{e in run r} v_i[e] · v_j[e] for the pairs i ≤ j in row order, pairs = count(count + 1)/2. A run is a block of 4096,
// whose sums the host adds in f64, or a row of a matrix. Inside a run lane l sums elements l, l + 64, … in f32 and lane
// sums are added in order: same bits on CPU and GPU. The first four vectors are read once for all their pairs.
// Shapes: count vectors of `elements` f32, `stride` apart, beginning at `slot` → ⌈elements/run⌉ · pairs f32.

var<workgroup> partial: array<f32, 640>;

fn add(sum: f32, a: f32, b: f32) -> f32 {
  return exact(sum + exact(a * b));
}

// Pair (i, j) in row order.
fn pair(i: u32, j: u32) -> u32 {
  return i * params.count - i * (i + 1u) / 2u + j;
}

// Adds the lanes of sum k and stores it as pair (i, j) of a run.
fn store_pair(run: u32, k: u32, i: u32, j: u32) {
  var total = 0.0;
  for (var l = 0u; l < 64u; l++) { total = exact(total + partial[64u * k + l]); }
  sums[run * params.count * (params.count + 1u) / 2u + pair(i, j)] = total;
}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let run = group_index(group);
  let begin = min(run * params.run, params.elements);
  let end = min(begin + params.run, params.elements);
  let n = params.count;
  let stride = params.stride;
  var s00 = 0.0;
  var s01 = 0.0;
  var s11 = 0.0;
  var s02 = 0.0;
  var s12 = 0.0;
  var s22 = 0.0;
  var s03 = 0.0;
  var s13 = 0.0;
  var s23 = 0.0;
  var s33 = 0.0;
  for (var e = begin + lane; e < end; e += 64u) {
    let at = params.slot + e;
    let a = values[at];
    s00 = add(s00, a, a);
    if (n > 1u) {
      let b = values[at + stride];
      s01 = add(s01, a, b);
      s11 = add(s11, b, b);
      if (n > 2u) {
        let c = values[at + 2u * stride];
        s02 = add(s02, a, c);
        s12 = add(s12, b, c);
        s22 = add(s22, c, c);
        if (n > 3u) {
          let d = values[at + 3u * stride];
          s03 = add(s03, a, d);
          s13 = add(s13, b, d);
          s23 = add(s23, c, d);
          s33 = add(s33, d, d);
        }
      }
    }
  }
  // column by column of the triangle: sum k is pair (i, j) with k = j(j + 1)/2 + i
  partial[lane] = s00;
  partial[64u + lane] = s01;
  partial[128u + lane] = s11;
  partial[192u + lane] = s02;
  partial[256u + lane] = s12;
  partial[320u + lane] = s22;
  partial[384u + lane] = s03;
  partial[448u + lane] = s13;
  partial[512u + lane] = s23;
  partial[576u + lane] = s33;
  workgroupBarrier();
  if (begin < end) {
    for (var j = 0u; j < min(n, 4u); j++) {
      if (lane >= j * (j + 1u) / 2u && lane < (j + 1u) * (j + 2u) / 2u) { store_pair(run, lane, lane - j * (j + 1u) / 2u, j); }
    }
  }
  // ten pairs are stored at a time, a lane each: Mesa's software Vulkan ends all loops of a kernel after 65 535 rounds
  workgroupBarrier();
  var held = 0u;
  for (var j = 4u; j < n; j++) {
    for (var i = 0u; i <= j; i++) {
      var sum = 0.0;
      for (var e = params.slot + begin + lane; e < params.slot + end; e += 64u) {
        sum = add(sum, values[i * stride + e], values[j * stride + e]);
      }
      partial[64u * held + lane] = sum;
      held++;
      if (held < 10u && !(i == j && j + 1u == n)) { continue; }
      workgroupBarrier();
      if (lane < held && begin < end) {
        // the lane's pair: as many before (i, j) as there are lanes behind it
        var a = i;
        var b = j;
        for (var l = lane + 1u; l < held; l++) {
          if (a == 0u) { b--; }
          a = select(a - 1u, b, a == 0u);
        }
        store_pair(run, lane, a, b);
      }
      workgroupBarrier();
      held = 0u;
    }
  }
  if (lane == 0u && begin < end) { stamp(end - begin); }
}
