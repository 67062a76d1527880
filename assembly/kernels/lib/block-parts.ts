// Helpers shared by the block encoders: groups side by side, halves, levels in few bits.
import { narrowF16x4, widenF16 } from './half';

/** Writes a scale as binary16 and returns it as rounded. */
export function putHalf(value: f32, out: usize): f32 {
  const half = i32x4.extract_lane(narrowF16x4(f32x4.splat(value)), 0);
  store<u16>(out, <u16>half);
  return reinterpret<f32>(widenF16(<u32>half & 0xffff));
}

/** Four runs of `count` f32, `stride` bytes apart, side by side: the i-th vector has the i-th of each. */
@inline
export function sideBySide(from: usize, stride: usize, count: i32, out: usize): void {
  interleaved(from, from + stride, from + 2 * stride, from + 3 * stride, count, out);
}

export function interleaved(a: usize, b: usize, c: usize, d: usize, count: i32, out: usize): void {
  for (let i: usize = 0; i < <usize>count << 2; i += 16) {
    const one = v128.load(a + i);
    const two = v128.load(b + i);
    const three = v128.load(c + i);
    const four = v128.load(d + i);
    const low = v128.shuffle<u32>(one, two, 0, 4, 1, 5);
    const lower = v128.shuffle<u32>(three, four, 0, 4, 1, 5);
    const high = v128.shuffle<u32>(one, two, 2, 6, 3, 7);
    const higher = v128.shuffle<u32>(three, four, 2, 6, 3, 7);
    const to = out + (i << 2);
    v128.store(to, v128.shuffle<u64>(low, lower, 0, 2));
    v128.store(to, v128.shuffle<u64>(low, lower, 1, 3), 16);
    v128.store(to, v128.shuffle<u64>(high, higher, 0, 2), 32);
    v128.store(to, v128.shuffle<u64>(high, higher, 1, 3), 48);
  }
}

/** Levels side by side as i32 → bytes, in consecutive runs of `count`. */
export function levelBytes(levels: usize, count: i32, out: usize): void {
  for (let i = 0; i < count; i++) {
    const at = levels + (<usize>i << 4);
    for (let lane = 0; lane < 4; lane++) {
      store<u8>(out + lane * count + i, load<u8>(at + (<usize>lane << 2)));
    }
  }
}

/** 32 levels of four bits: element i and i + 16 in one byte. */
@inline
export function putFourBits(levels: usize, out: usize): void {
  const low = v128.load(levels);
  const high = v128.load(levels, 16);
  const mask = i8x16.splat(15);
  v128.store(out, v128.or(v128.and(low, mask), i8x16.shl(v128.and(high, mask), 4)));
}

/** 32 levels of five bits: a word of the fifth ones, then the others as four bits. */
@inline
export function putFiveBits(levels: usize, out: usize): void {
  const low = i8x16.bitmask(i8x16.shl(v128.load(levels), 3));
  const high = i8x16.bitmask(i8x16.shl(v128.load(levels, 16), 3));
  store<u32>(out, <u32>low | (<u32>high << 16));
  putFourBits(levels, out + 4);
}

/** Σx² of so many elements, one after the other. */
export function squares(x: usize, count: i32): f32 {
  let sum: f32 = 0;
  for (let i: usize = 0; i < <usize>count << 2; i += 4) sum += load<f32>(x + i) * load<f32>(x + i);
  return sum;
}
