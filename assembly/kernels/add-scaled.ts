// y += scale · x: shaders/add-scaled.wgsl.

export function addScaled(x: usize, y: usize, n: i32, scale: f32): void {
  const end = <usize>n << 2;
  const by = f32x4.splat(scale);
  let e: usize = 0;
  for (; e + 16 <= end; e += 16) {
    v128.store(y + e, f32x4.add(v128.load(y + e), f32x4.mul(by, v128.load(x + e))));
  }
  for (; e < end; e += 4) store<f32>(y + e, load<f32>(y + e) + scale * load<f32>(x + e));
}
