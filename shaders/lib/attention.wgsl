// Attention works on groups of up to four consecutive rows of one sequence, so that each key and value read serves all
// four. groups[4g …] = (first row, rows, row of keys and values where the sequence begins, position of the first row).
// A group sees the keys from first_column (a multiple of 4) on; scores are [groups, heads, 4, line_width] f32, line_width a multiple
// of 4, and column c of a group is key first_column + c.

struct Group {
  row: u32,
  rows: u32,
  origin: u32,
  position: u32,
}

fn group_at(g: u32) -> Group {
  return Group(groups[4u * g], groups[4u * g + 1u], groups[4u * g + 2u], groups[4u * g + 3u]);
}

// First key that a row at this position may see: of a window, or, where its highest bit is set, of a chunk of positions.
fn first_key(position: u32) -> u32 {
  if (params.window >= 0x80000000u) { return position - position % (params.window & 0x7fffffffu); }
  return max(position + 1u, params.window) - params.window;
}

fn first_column(g: Group) -> u32 {
  return first_key(g.position) & ~3u;
}

// Columns of the group in fours; beyond its last row's key they hold nothing.
fn column_quads(g: Group) -> u32 {
  return (g.position + g.rows - first_column(g) + 3u) / 4u;
}

fn four(first: u32) -> vec4<u32> {
  return vec4<u32>(first, first + 1u, first + 2u, first + 3u);
}
