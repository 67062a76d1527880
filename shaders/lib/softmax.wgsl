// Lines shared by both forms of the softmax: a line is one row of one head of a group (lib/attention.wgsl).

struct Line {
  // where it begins in scores, its columns in fours, and the columns its row may see: low … high
  begin: u32,
  quads: u32,
  low: u32,
  high: u32,
  // the group has no such row: nothing to do
  absent: bool,
}

fn line_at(index: u32) -> Line {
  let g = group_at(params.group_begin + index / 4u / params.heads);
  let position = g.position + min(index % 4u, g.rows - 1u);
  let base = first_column(g);
  return Line(
    index * (params.line_width / 4u),
    column_quads(g),
    first_key(position) - base,
    position - base,
    index % 4u >= g.rows,
  );
}

fn seen(line: Line, quad: u32) -> vec4<bool> {
  let columns = four(4u * quad);
  return (columns >= vec4<u32>(line.low)) & (columns <= vec4<u32>(line.high));
}

fn exponential(line: Line, quad: u32, top: f32) -> vec4<f32> {
  return select(vec4<f32>(), exp(scores[line.begin + quad] - top), seen(line, quad));
}
