// Vectors of a tile as they are stored, block by block: BF16 is widened in registers, the rest is decoded into slots of the
// scratch first. A block is plain where each of its values is 0 or of a size from 2^-50 to 2^50: then nothing on the way
// is subnormal, infinite or NaN (with coefficients of 2^-10 to 2^10), and columns of four lanes go through all of a
// kernel's steps at once. What is not plain, and the end of a tensor, goes through one kernel after another, in slots.
import { decode } from '../encoding';
import { BLOCK, narrowBf16x4, narrowF16x4 } from './lanes';

/** Bytes of a slot: a block of f32. */
export const SLOT: usize = <usize>BLOCK << 2;

/** Bytes of the entry of a vector in the list of sources: address, dtype (src/backend/kernels/encoding.ts), form. */
export const SOURCE: usize = 12;
/** The vector is f32 already. */
export const LEAVE: i32 = 0;
/** The base is to be subtracted from it. */
export const CHANGE: i32 = 2;

/** Lanes of a row: a sum's lane l adds the elements l, l + 64, … (docs/numbers.md). */
export const ROW: usize = 64;
export const ROWS: i32 = BLOCK / 64;

const LEAST: u32 = 127 - 50;
const MOST: u32 = 127 + 50;

/** Elements e … e + 3 of a vector, `at` being where they begin. T: u16 for BF16, f32. */
@inline
export function four<T>(at: usize): v128 {
  return isFloat<T>() ? v128.load(at) : i32x4.shl(v128.load_ext<u16>(at), 16);
}

/** Whether n values are plain, a multiple of 16. */
export function isPlain<T>(at: usize, n: i32 = BLOCK): bool {
  let least = i32x4.splat(-1);
  let most = i32x4.splat(0);
  if (isFloat<T>()) {
    for (const end = at + (<usize>n << 2); at < end; at += 32) {
      const x = i32x4.shl(v128.load(at), 1);
      const y = i32x4.shl(v128.load(at, 16), 1);
      const one = i32x4.splat(1);
      least = i32x4.min_u(least, i32x4.min_u(i32x4.sub(x, one), i32x4.sub(y, one)));
      most = i32x4.max_u(most, i32x4.max_u(x, y));
    }
    const low = i32x4.lt_u(least, i32x4.splat((LEAST << 24) - 1));
    return !v128.any_true(low) && !isLarge(most);
  }
  for (const end = at + (<usize>n << 1); at < end; at += 32) {
    const x = i16x8.shl(v128.load(at), 1);
    const y = i16x8.shl(v128.load(at, 16), 1);
    const one = i16x8.splat(1);
    least = i16x8.min_u(least, i16x8.min_u(i16x8.sub(x, one), i16x8.sub(y, one)));
    most = i16x8.max_u(most, i16x8.max_u(x, y));
  }
  const low = i16x8.lt_u(least, i16x8.splat(<i16>((LEAST << 8) - 1)));
  return !v128.any_true(v128.or(low, i16x8.ge_u(most, i16x8.splat(<i16>(MOST << 8)))));
}

/** The least of four keys as `hasSmall` takes them: magnitude · 2 − 1. */
@inline
export function leastKey(least: v128, x: v128): v128 {
  return i32x4.min_u(least, i32x4.sub(i32x4.shl(x, 1), i32x4.splat(1)));
}

/** Whether a value other than 0 below 2^-50 was among those of `leastKey`. */
@inline
export function wasSmall(least: v128): bool {
  return v128.any_true(i32x4.lt_u(least, i32x4.splat((LEAST << 24) - 1)));
}

/** Whether one of four magnitudes, shifted by a bit, is of 2^50 or above. */
@inline
export function isLarge(most: v128): bool {
  return v128.any_true(i32x4.ge_u(most, i32x4.splat(MOST << 24)));
}

/** Adds the 64 lane sums of each of `count` sums at `lanes` in order, into `sums`. None of them is subnormal. */
export function addLanes(lanes: usize, count: i32, sums: usize): void {
  // each sum waits for itself at every step: eight of them at once take no longer, whatever the last of them are
  for (let k = 0; k < count; k += 8) {
    let s0: f32 = 0;
    let s1: f32 = 0;
    let s2: f32 = 0;
    let s3: f32 = 0;
    let s4: f32 = 0;
    let s5: f32 = 0;
    let s6: f32 = 0;
    let s7: f32 = 0;
    const end = lanes + (ROW << 2);
    for (let at = lanes; at < end; at += 4) {
      s0 += load<f32>(at);
      s1 += load<f32>(at, 256);
      s2 += load<f32>(at, 512);
      s3 += load<f32>(at, 768);
      s4 += load<f32>(at, 1024);
      s5 += load<f32>(at, 1280);
      s6 += load<f32>(at, 1536);
      s7 += load<f32>(at, 1792);
    }
    store<f32>(sums, s0);
    if (k + 1 < count) store<f32>(sums, s1, 4);
    if (k + 2 < count) store<f32>(sums, s2, 8);
    if (k + 3 < count) store<f32>(sums, s3, 12);
    if (k + 4 < count) store<f32>(sums, s4, 16);
    if (k + 5 < count) store<f32>(sums, s5, 20);
    if (k + 6 < count) store<f32>(sums, s6, 24);
    if (k + 7 < count) store<f32>(sums, s7, 28);
    lanes += ROW << 5;
    sums += 32;
  }
}

/** Adds to the word at `at`. */
@inline
export function addTo(at: usize, count: i32): void {
  store<i32>(at, load<i32>(at) + count);
}

@inline
export function addressOf(sources: usize, i: usize, block: usize): usize {
  const source = sources + i * SOURCE;
  const dtype = load<i32>(source, 4);
  return <usize>load<u32>(source) + (block << <usize>(dtype == 0 ? 2 : 1));
}

/** Whether the block of each of `count` sources is BF16. */
export function isHalves(sources: usize, count: usize): bool {
  for (let i: usize = 0; i < count; i++) {
    if (load<i32>(sources + i * SOURCE, 4) != 2 || load<i32>(sources + i * SOURCE, 8) == LEAVE) return false;
  }
  return true;
}

/** Whether the blocks at a list of addresses are plain, from the one numbered `first` on. */
export function arePlain<T>(places: usize, first: usize, count: usize): bool {
  for (let i = first; i < count; i++) if (!isPlain<T>(load<usize>(places + (i << 2)))) return false;
  return true;
}

/** Lists at `places` where the blocks of sources are stored; whether each of them is plain. */
export function storedPlain<T>(sources: usize, first: usize, count: usize, block: usize, places: usize): bool {
  for (let i = first; i < count; i++) store<usize>(places + (i << 2), addressOf(sources, i, block));
  return arePlain<T>(places, first, count);
}

/** Four finite values in a dtype, each in the low half of a lane where that is of 16 bits. */
@inline
export function packed4(bits: v128, dtype: i32): v128 {
  if (dtype == 2) return narrowBf16x4(bits);
  return dtype == 1 ? narrowF16x4(bits) : bits;
}

/** Which of four packed elements are those of the base, +0 and −0 being one; `magnitude`: all bits but the sign. */
@inline
export function samePacked(packed: v128, base: v128, magnitude: v128): v128 {
  const zero = i32x4.eq(v128.and(v128.or(packed, base), magnitude), i32x4.splat(0));
  return v128.or(i32x4.eq(packed, base), zero);
}

/** Puts four lane sums where the first of a list is to lie; returns where those of the next are to. */
@inline
export function putSum(lane: usize, sum: v128): usize {
  v128.store(lane, sum);
  return lane + (ROW << 2);
}

/** Models, as a type so that each number of them has loops of its own: u8 one, u16 two, u32 three, u64 four. */
@inline
export function modelsOf<M>(): i32 {
  return sizeof<M>() == 8 ? 4 : sizeof<M>() == 4 ? 3 : sizeof<M>();
}

/** Puts the lane sums of the products of the base with itself and with each model. */
@inline
export function putBaseProducts<M>(lane: usize, s00: v128, s01: v128, s02: v128, s03: v128, s04: v128): usize {
  lane = putSum(putSum(lane, s00), s01);
  if (modelsOf<M>() > 1) lane = putSum(lane, s02);
  if (modelsOf<M>() > 2) lane = putSum(lane, s03);
  return modelsOf<M>() > 3 ? putSum(lane, s04) : lane;
}

/** Puts those of the products of the models with each other. */
@inline
export function putProducts<M>(
  lane: usize,
  s11: v128,
  s12: v128,
  s13: v128,
  s14: v128,
  s22: v128,
  s23: v128,
  s24: v128,
  s33: v128,
  s34: v128,
  s44: v128,
): usize {
  const models = modelsOf<M>();
  lane = putSum(lane, s11);
  if (models > 1) lane = putSum(lane, s12);
  if (models > 2) lane = putSum(lane, s13);
  if (models > 3) lane = putSum(lane, s14);
  if (models > 1) lane = putSum(lane, s22);
  if (models > 2) lane = putSum(lane, s23);
  if (models > 3) lane = putSum(lane, s24);
  if (models > 2) lane = putSum(lane, s33);
  return models > 3 ? putSum(putSum(lane, s34), s44) : lane;
}
