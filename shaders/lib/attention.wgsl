// Shared by both forms of attention:
// y[r, h] = Σ_j p_j · v[j, h / heads_per_key] over the keys j that row r may see, p = softmax of their scores
// cap(scale · q[r, h] · k[j, h / heads_per_key]) + own[h] · j where own is slopes (1); where it is sinks (2), own[h] is one more
// score that takes its share and brings no value (Xiao et al. 2023, arXiv 2309.17453). cap(x) = c · tanh(x / c), none for c = 0.
// Rows come in groups of up to four consecutive ones of a sequence, so that each key and value read may serve all four:
// groups[4g …] = (first row, rows, row of keys and values where the sequence begins, position of the first row).
// Shapes: q [·, heads · 4·dim4], k and v [·, heads / heads_per_key · 4·dim4 and 4·value4], own [heads], y [·, heads · 4·value4], f32;
// `room` is the processor's.

const LEAST = -3.4e38;

// First key that a row at this position may see: of a window, or, where its highest bit is set, of a chunk of positions.
fn first_key(position: u32) -> u32 {
  if (params.window >= 0x80000000u) { return position - position % (params.window & 0x7fffffffu); }
  return max(position + 1u, params.window) - params.window;
}

fn capped(s: f32) -> f32 {
  if (params.cap == 0.0) { return s; }
  return params.cap * tanh_f32(s / params.cap);
}

// The number of a head where it is of this kind.
fn own_of(head: u32, kind: u32, otherwise: f32) -> f32 {
  if (params.own_kind != kind) { return otherwise; }
  return own[head];
}
