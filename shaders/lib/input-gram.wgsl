// Shared by both forms of the Gram accumulation: S[i, j] += Σ_r x[r, begin + i] · x[r, begin + j] over rows
// first … first + rows. Only tiles on and below the diagonal are summed; each is stored on both sides, so that S is exactly
// symmetric. A dispatch sums at most 2048 rows in registers and adds them to S once.
// Shapes: x [·, 4·stride4] f32, columns 4·begin4 … 4·(begin4 + width4); S [4·width4, 4·width4] f32.

// Tile t of the lower triangle, counted row by row: (row of tiles, column of tiles).
fn lower_tile(t: u32) -> vec2<u32> {
  var i = u32((sqrt(8.0 * f32(t) + 1.0) - 1.0) * 0.5);
  while (i * (i + 1u) / 2u > t) { i--; }
  while ((i + 1u) * (i + 2u) / 2u <= t) { i++; }
  return vec2<u32>(i, t - i * (i + 1u) / 2u);
}

// Adds the products of quads i and j and mirrors what comes of it; past the edge nothing is stored.
fn fold(i: u32, j: u32, sums: mat4x4<f32>) {
  if (i >= params.width4 || j > i) { return; }
  let at = 4u * i * params.width4 + j;
  let w = params.width4;
  let m = mat4x4<f32>(s[at], s[at + w], s[at + 2u * w], s[at + 3u * w]) + sums;
  s[at] = m[0];
  s[at + w] = m[1];
  s[at + 2u * w] = m[2];
  s[at + 3u * w] = m[3];
  if (j == i) { return; }
  let t = transpose(m);
  let mirrored = 4u * j * w + i;
  s[mirrored] = t[0];
  s[mirrored + w] = t[1];
  s[mirrored + 2u * w] = t[2];
  s[mirrored + 3u * w] = t[3];
}
