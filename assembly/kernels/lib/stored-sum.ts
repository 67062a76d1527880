import { decode, encode } from '../encoding';
import { innerProducts } from '../products';
import { mergeCounts } from '../statistics';
import { weightedSum } from '../sums';
import { BLOCK, changeSquares, lanesSum } from './lanes';
import { addLanes, addressOf, addTo, arePlain, four, isHalves, leastKey, modelsOf, packed4, putBaseProducts, putProducts, putSum, ROW, ROWS, samePacked, SLOT, SOURCE, storedPlain, wasSmall } from './stored';

// Weighted sums from stored words with all they are measured by: shaders/sums/stored-sum.wgsl.

// Models are a type (`modelsOf`), likewise whether there is a base: i32 yes, u32 no.

/**
 * A plain block, whose first model is the anchor; `places`: addresses of the base and the models. Returns how many elements are at
 * the base, or −1 where the block has to be done another way: a change is small.
 */
function sumPlain<T, M, B>(
  places: usize,
  table: usize,
  packed: usize,
  dtype: i32,
  sums: usize,
  status: usize,
  lanes: usize,
): i32 {
  const models = modelsOf<M>();
  const v0 = load<usize>(places);
  const v1 = load<usize>(places, 4);
  const v2 = load<usize>(places, 8);
  const v3 = load<usize>(places, 12);
  const v4 = load<usize>(places, 16);
  const own = v128.load32_splat(table);
  const affine = load<f32>(table, 4) == 1;
  const c2 = models > 1 ? v128.load32_splat(table, 12) : own;
  const c3 = models > 2 ? v128.load32_splat(table, 16) : own;
  const c4 = models > 3 ? v128.load32_splat(table, 20) : own;
  const zero = f32x4.splat(0);
  const sign = i32x4.splat(0x80000000);
  const magnitude = i32x4.splat(dtype == 0 ? 0x7fffffff : 0x7fff);
  let least = i32x4.splat(-1);
  let still = zero;
  let wrong = zero;
  const pairs: usize = ((models + 1) * (models + 2)) / 2;
  const first: usize = isSigned<B>() ? 0 : models + 1;
  for (let column: usize = 0; column < ROW; column += 4) {
    let s00 = zero;
    let s01 = zero;
    let s02 = zero;
    let s03 = zero;
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
    let moved = zero;
    let at = column * sizeof<T>();
    let to = packed + (column << (dtype == 0 ? 2 : 1));
    for (let row = 0; row < ROWS; row++) {
      const base = isSigned<B>() ? four<T>(v0 + at) : zero;
      const a = four<T>(v1 + at);
      const b = models > 1 ? four<T>(v2 + at) : zero;
      const c = models > 2 ? four<T>(v3 + at) : zero;
      const d = models > 3 ? four<T>(v4 + at) : zero;
      let delta = zero;
      const shift = affine ? a : zero;
      if (models > 1) delta = f32x4.add(delta, f32x4.mul(f32x4.sub(b, shift), c2));
      if (models > 2) delta = f32x4.add(delta, f32x4.mul(f32x4.sub(c, shift), c3));
      if (models > 3) delta = f32x4.add(delta, f32x4.mul(f32x4.sub(d, shift), c4));
      // a change of zero is added as −0, which leaves every start its bits
      const change = v128.or(delta, v128.and(f32x4.eq(delta, zero), sign));
      const out = f32x4.add(v128.and(f32x4.mul(a, own), f32x4.ne(own, zero)), change);
      const bits = packed4(out, dtype);
      still = i32x4.sub(still, samePacked(bits, isSigned<B>() ? (isFloat<T>() ? packed4(base, dtype) : i32x4.shr_u(base, 16)) : zero, magnitude));
      if (dtype == 0) v128.store(to, bits);
      else v128.store64_lane(to, i16x8.narrow_i32x4_u(bits, bits), 0);
      if (dtype == 1) wrong = i32x4.sub(wrong, i32x4.eq(v128.and(bits, i32x4.splat(0x7c00)), i32x4.splat(0x7c00)));
      const x = isSigned<B>() ? f32x4.sub(out, base) : out;
      least = leastKey(least, x);
      moved = f32x4.add(moved, f32x4.mul(x, x));
      if (isSigned<B>()) {
        s00 = f32x4.add(s00, f32x4.mul(base, base));
        s01 = f32x4.add(s01, f32x4.mul(base, a));
        if (models > 1) s02 = f32x4.add(s02, f32x4.mul(base, b));
        if (models > 2) s03 = f32x4.add(s03, f32x4.mul(base, c));
      }
      s11 = f32x4.add(s11, f32x4.mul(a, a));
      if (models > 1) {
        s12 = f32x4.add(s12, f32x4.mul(a, b));
        s22 = f32x4.add(s22, f32x4.mul(b, b));
      }
      if (models > 2) {
        s13 = f32x4.add(s13, f32x4.mul(a, c));
        s23 = f32x4.add(s23, f32x4.mul(b, c));
        s33 = f32x4.add(s33, f32x4.mul(c, c));
      }
      if (models > 3) {
        s14 = f32x4.add(s14, f32x4.mul(a, d));
        s24 = f32x4.add(s24, f32x4.mul(b, d));
        s34 = f32x4.add(s34, f32x4.mul(c, d));
        s44 = f32x4.add(s44, f32x4.mul(d, d));
      }
      at += ROW * sizeof<T>();
      to += ROW << (dtype == 0 ? 2 : 1);
    }
    let lane = lanes + (column << 2);
    if (isSigned<B>()) lane = putBaseProducts<M>(lane, s00, s01, s02, s03, zero);
    lane = putProducts<M>(lane, s11, s12, s13, s14, s22, s23, s24, s33, s34, s44);
    putSum(lane, moved);
  }
  if (wasSmall(least)) return -1;
  memory.fill(sums, 0, first << 2);
  addLanes(lanes, <i32>(pairs - first + 1), sums + (first << 2));
  if (dtype == 1) addTo(status, lanesSum(wrong));
  return lanesSum(still);
}

/** `sumPlain` for this number of models. */
function sumUsual<T>(
  models: i32,
  hasBase: bool,
  places: usize,
  table: usize,
  packed: usize,
  dtype: i32,
  sums: usize,
  status: usize,
  lanes: usize,
): i32 {
  if (hasBase) {
    if (models == 1) return sumPlain<T, u8, i32>(places, table, packed, dtype, sums, status, lanes);
    if (models == 2) return sumPlain<T, u16, i32>(places, table, packed, dtype, sums, status, lanes);
    return sumPlain<T, u32, i32>(places, table, packed, dtype, sums, status, lanes);
  }
  if (models == 1) return sumPlain<T, u8, u32>(places, table, packed, dtype, sums, status, lanes);
  if (models == 2) return sumPlain<T, u16, u32>(places, table, packed, dtype, sums, status, lanes);
  if (models == 3) return sumPlain<T, u32, u32>(places, table, packed, dtype, sums, status, lanes);
  return sumPlain<T, u64, u32>(places, table, packed, dtype, sums, status, lanes);
}

/** One kernel after another, from stored words to the tile's; returns how many elements are at the base. */
function sumSlots(
  slots: usize,
  models: i32,
  hasBase: bool,
  anchor: i32,
  table: usize,
  extreme: bool,
  packed: usize,
  dtype: i32,
  n: i32,
  sums: usize,
  status: usize,
  scratch: usize,
  merged: usize,
): i32 {
  const pairs = ((models + 1) * (models + 2)) / 2;
  innerProducts(slots, SLOT, models + 1, n, BLOCK, sums, scratch);
  if (!hasBase) memory.fill(sums, 0, <usize>(models + 1) << 2);
  weightedSum(slots + SLOT, SLOT, models, anchor, table, extreme, merged, n);
  changeSquares(slots, merged, n, sums + (<usize>pairs << 2), scratch);
  addTo(status, encode(merged, packed, n, dtype));
  store<i32>(scratch, 0);
  mergeCounts(slots, SLOT, 0, n, table, 0, false, false, packed, dtype, scratch, scratch + 16);
  return load<i32>(scratch);
}

/**
 * Sums and packs n elements. `sources`: base and models (stored.ts), an address of 0 for a base that is missing; `table`: b,
 * k, c₁, …; `extreme`: one of them is small; `plain`: none is small or large. `sums`: the products of all pairs, the squared
 * change and the elements at the base of every block. `status`: counts of what is not finite, of the base, the models, and
 * the result at `wrong`. `slots`: a slot for every vector; `scratch`: 17 KiB; `merged`: a slot.
 */
export function storedSum(
  sources: usize,
  models: i32,
  anchor: i32,
  table: usize,
  extreme: bool,
  plain: bool,
  packed: usize,
  dtype: i32,
  n: i32,
  sums: usize,
  status: usize,
  wrong: usize,
  slots: usize,
  scratch: usize,
  merged: usize,
): void {
  const hasBase = load<u32>(sources) != 0;
  const count = <usize>models + 1;
  const first: usize = hasBase ? 0 : 1;
  const halves = dtype == 2 && isHalves(sources + first * SOURCE, count - first);
  const words = (count * (count + 1)) / 2 + 2;
  const places = scratch;
  const lanes = scratch + 256;
  for (let begin: usize = 0; begin < <usize>n; begin += BLOCK) {
    const size = min(BLOCK, n - <i32>begin);
    const to = packed + (begin << (dtype == 0 ? 2 : 1));
    const usual = plain && anchor == 0 && size == BLOCK;
    let still = -1;
    if (usual && halves && storedPlain<u16>(sources, first, count, begin, places)) {
      still = sumUsual<u16>(models, hasBase, places, table, to, 2, sums, wrong, lanes);
    }
    if (still < 0) {
      if (!hasBase) memory.fill(slots, 0, SLOT);
      for (let i = first; i < count; i++) {
        const bad = decode(addressOf(sources, i, begin), slots + i * SLOT, size, load<i32>(sources + i * SOURCE, 4));
        addTo(status + (i << 2), bad);
      }
    }
    if (still < 0 && usual && !halves) {
      for (let i: usize = 0; i < count; i++) store<usize>(places + (i << 2), slots + i * SLOT);
      if (arePlain<f32>(places, first, count)) still = sumUsual<f32>(models, hasBase, places, table, to, dtype, sums, wrong, lanes);
    }
    if (still < 0) {
      still = sumSlots(slots, models, hasBase, anchor, table, extreme, to, dtype, size, sums, wrong, scratch, merged);
    }
    store<i32>(sums + ((words - 1) << 2), still);
    sums += words << 2;
  }
}
