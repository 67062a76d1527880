import { masked, tau } from './merge-changes';
import { addLanes, four, modelsOf, putBaseProducts, putProducts, putSum, ROW, ROWS, SLOT } from './stored';

// A tile of changes, as they are stored, measured for a selection that is not known yet.

/**
 * Sums of a plain block: products of all pairs to `sums` and, where there is an address, Σ|τ| to `norms`, `spread` bytes apart,
 * and the changes to `slots`. Models as in `modelsOf`, masks as in merge-changes.ts.
 */
function measurePlain<T, M>(
  places: usize,
  masks: usize,
  pitch: usize,
  sums: usize,
  norms: usize,
  spread: usize,
  slots: usize,
  lanes: usize,
): void {
  const models = modelsOf<M>();
  const v0 = load<usize>(places);
  const v1 = load<usize>(places, 4);
  const v2 = load<usize>(places, 8);
  const v3 = load<usize>(places, 12);
  const v4 = load<usize>(places, 16);
  const zero = f32x4.splat(0);
  for (let column: usize = 0; column < ROW; column += 4) {
    let s00 = zero;
    let s01 = zero;
    let s02 = zero;
    let s03 = zero;
    let s04 = zero;
    let s11 = zero;
    let s12 = zero;
    let s13 = zero;
    let s14 = zero;
    let s22 = zero;
    let s23 = zero;
    let s24 = zero;
    let s33 = zero;
    let s34 = zero;
    let s44 = zero;
    let norm1 = zero;
    let norm2 = zero;
    let norm3 = zero;
    let norm4 = zero;
    let at = column * sizeof<T>();
    let to = slots + SLOT + (column << 2);
    let mask = masks + (column >> 3);
    const shift = <i32>column & 4;
    for (let row = 0; row < ROWS; row++) {
      const base = four<T>(v0 + at);
      let a = tau<T>(v1 + at, base);
      let b = models > 1 ? tau<T>(v2 + at, base) : zero;
      let c = models > 2 ? tau<T>(v3 + at, base) : zero;
      let d = models > 3 ? tau<T>(v4 + at, base) : zero;
      if (slots) {
        v128.store(to, a);
        if (models > 1) v128.store(to + SLOT, b);
        if (models > 2) v128.store(to + 2 * SLOT, c);
        if (models > 3) v128.store(to + 3 * SLOT, d);
        to += ROW << 2;
      }
      if (masks) {
        a = masked(a, mask, shift);
        if (models > 1) b = masked(b, mask + pitch, shift);
        if (models > 2) c = masked(c, mask + 2 * pitch, shift);
        if (models > 3) d = masked(d, mask + 3 * pitch, shift);
        mask += ROW >> 3;
      }
      s00 = f32x4.add(s00, f32x4.mul(base, base));
      s01 = f32x4.add(s01, f32x4.mul(base, a));
      s11 = f32x4.add(s11, f32x4.mul(a, a));
      if (models > 1) {
        s02 = f32x4.add(s02, f32x4.mul(base, b));
        s12 = f32x4.add(s12, f32x4.mul(a, b));
        s22 = f32x4.add(s22, f32x4.mul(b, b));
      }
      if (models > 2) {
        s03 = f32x4.add(s03, f32x4.mul(base, c));
        s13 = f32x4.add(s13, f32x4.mul(a, c));
        s23 = f32x4.add(s23, f32x4.mul(b, c));
        s33 = f32x4.add(s33, f32x4.mul(c, c));
      }
      if (models > 3) {
        s04 = f32x4.add(s04, f32x4.mul(base, d));
        s14 = f32x4.add(s14, f32x4.mul(a, d));
        s24 = f32x4.add(s24, f32x4.mul(b, d));
        s34 = f32x4.add(s34, f32x4.mul(c, d));
        s44 = f32x4.add(s44, f32x4.mul(d, d));
      }
      if (norms) {
        norm1 = f32x4.add(norm1, f32x4.abs(a));
        if (models > 1) norm2 = f32x4.add(norm2, f32x4.abs(b));
        if (models > 2) norm3 = f32x4.add(norm3, f32x4.abs(c));
        if (models > 3) norm4 = f32x4.add(norm4, f32x4.abs(d));
      }
      at += ROW * sizeof<T>();
    }
    let lane = putBaseProducts<M>(lanes + (column << 2), s00, s01, s02, s03, s04);
    lane = putProducts<M>(lane, s11, s12, s13, s14, s22, s23, s24, s33, s34, s44);
    lane = putSum(lane, norm1);
    if (models > 1) lane = putSum(lane, norm2);
    if (models > 2) lane = putSum(lane, norm3);
    if (models > 3) putSum(lane, norm4);
  }
  const pairs = ((models + 1) * (models + 2)) / 2;
  addLanes(lanes, pairs, sums);
  lanes += (<usize>pairs * ROW) << 2;
  for (let i: usize = 0; norms && i < <usize>models; i++) addLanes(lanes + ((i * ROW) << 2), 1, norms + i * spread);
}

/** `measurePlain` for this number of models. */
export function measureUsual<T>(
  models: i32,
  places: usize,
  masks: usize,
  pitch: usize,
  sums: usize,
  norms: usize,
  spread: usize,
  slots: usize,
  lanes: usize,
): void {
  if (models == 1) measurePlain<T, u8>(places, masks, pitch, sums, norms, spread, slots, lanes);
  else if (models == 2) measurePlain<T, u16>(places, masks, pitch, sums, norms, spread, slots, lanes);
  else if (models == 3) measurePlain<T, u32>(places, masks, pitch, sums, norms, spread, slots, lanes);
  else measurePlain<T, u64>(places, masks, pitch, sums, norms, spread, slots, lanes);
}
