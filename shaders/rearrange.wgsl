// The transpose of x, y[c, r] = x[r, c], or with `reversed` x from its last element to its
// first (rows and columns of a square matrix in reverse order). Tolerance: 0.
// Shapes: x [rows, cols], y [cols, rows] f32 (reversed: [rows, cols]).

@group(0) @binding(1) var<storage, read> x: array<u32>;
@group(0) @binding(2) var<storage, read_write> y: array<u32>;

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let n = params.rows * params.cols;
  let begin = min(group_index(group) * 1024u, n);
  let end = min(begin + 1024u, n);
  for (var e = begin + lane; e < end; e += 64u) {
    let transposed = (e % params.rows) * params.cols + e / params.rows;
    y[e] = x[select(transposed, n - 1u - e, params.reversed == 1u)];
  }
  if (lane == 0u && begin < end) { stamp(end - begin); }
}
