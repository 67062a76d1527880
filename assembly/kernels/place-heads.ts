// Heads to their places, rotated: shaders/place-heads.wgsl. In halves, four pairs at a time.

/** One head of one row. @param cos cosines of its position, the sines behind them @param half pairs that rotate */
@inline
function head(x: usize, y: usize, cos: usize, half: i32, dim: i32, adjacent: bool): void {
  const sin = cos + (<usize>half << 2);
  const other: usize = adjacent ? 4 : <usize>half << 2;
  const pair: usize = adjacent ? 8 : 4;
  let i = 0;
  if (!adjacent) {
    for (; i + 4 <= half; i += 4) {
      const at = <usize>i << 2;
      const a = v128.load(x + at);
      const b = v128.load(x + other + at);
      const c = v128.load(cos + at);
      const s = v128.load(sin + at);
      v128.store(y + at, f32x4.sub(f32x4.mul(a, c), f32x4.mul(b, s)));
      v128.store(y + other + at, f32x4.add(f32x4.mul(b, c), f32x4.mul(a, s)));
    }
  }
  for (; i < half; i++) {
    const at = <usize>i * pair;
    const a = load<f32>(x + at);
    const b = load<f32>(x + other + at);
    const c = load<f32>(cos + (<usize>i << 2));
    const s = load<f32>(sin + (<usize>i << 2));
    store<f32>(y + at, a * c - b * s);
    store<f32>(y + other + at, b * c + a * s);
  }
  const turned = <usize>half << 3;
  if (turned < <usize>dim << 2) memory.copy(y + turned, x + turned, (<usize>dim << 2) - turned);
}

/** The heads of a row. @param x its first head @param group heads of a group, groups `groupPitch` bytes apart */
export function placeRow(
  x: usize,
  y: usize,
  cos: usize,
  heads: i32,
  dim: i32,
  half: i32,
  headPitch: usize,
  group: i32,
  groupPitch: usize,
  yPitch: usize,
  adjacent: bool,
): void {
  for (let h = 0; h < heads; h++) {
    const from = x + <usize>(h / group) * groupPitch + <usize>(h % group) * headPitch;
    head(from, y + <usize>h * yPitch, cos, half, dim, adjacent);
  }
}
