// Draws of Philox4x32-10, eight counters at a time: shaders/lib/philox.wgsl, src/backend/philox.ts.
import { transpose4 } from './lanes';

/** High words of four products, of which `even` has lanes 0 and 1 and `odd` lanes 2 and 3. */
@inline
function high(even: v128, odd: v128): v128 {
  return v128.shuffle<u32>(even, odd, 1, 3, 5, 7);
}

/** Bytes of a table of round keys. */
export const ROUND_KEYS: usize = 320;

/** The two keys of each of the ten rounds, each in four lanes. */
export function spreadKeys(key0: u32, key1: u32, keys: usize): void {
  for (let round: usize = 0; round < ROUND_KEYS; round += 32) {
    v128.store(keys + round, i32x4.splat(key0));
    v128.store(keys + round, i32x4.splat(key1), 16);
    key0 += 0x9e3779b9;
    key1 += 0xbb67ae85;
  }
}

/**
 * The 32 random words of counters c … c + 7 to `out`: two sets of four counters beside each other, as a round waits for
 * the one before. `keys`: the table of `spreadKeys`.
 */
@inline
export function draws(c: u32, keys: usize, out: usize): void {
  const m0 = i32x4.splat(0xcd9e8d57);
  const m1 = i32x4.splat(0xd2511f53);
  const c0 = i32x4.add(i32x4.splat(c), i32x4(0, 1, 2, 3));
  const c1 = i32x4.add(c0, i32x4.splat(4));
  // the first round: all words but the first are zero
  let a = v128.load(keys);
  let b = v128.load(keys, 16);
  let q0 = i64x2.extmul_low_i32x4_u(m1, c0);
  let q1 = i64x2.extmul_high_i32x4_u(m1, c0);
  let x0 = a;
  let y0 = i32x4.splat(0);
  let z0 = v128.xor(high(q0, q1), b);
  let w0 = i32x4.mul(m1, c0);
  q0 = i64x2.extmul_low_i32x4_u(m1, c1);
  q1 = i64x2.extmul_high_i32x4_u(m1, c1);
  let x1 = a;
  let y1 = y0;
  let z1 = v128.xor(high(q0, q1), b);
  let w1 = i32x4.mul(m1, c1);
  for (let round: usize = 32; round < ROUND_KEYS; round += 32) {
    a = v128.load(keys + round);
    b = v128.load(keys + round, 16);
    const p00 = i64x2.extmul_low_i32x4_u(m0, z0);
    const p01 = i64x2.extmul_high_i32x4_u(m0, z0);
    const p10 = i64x2.extmul_low_i32x4_u(m0, z1);
    const p11 = i64x2.extmul_high_i32x4_u(m0, z1);
    const q00 = i64x2.extmul_low_i32x4_u(m1, x0);
    const q01 = i64x2.extmul_high_i32x4_u(m1, x0);
    const w00 = i32x4.mul(m1, x0);
    x0 = v128.xor(v128.xor(high(p00, p01), y0), a);
    y0 = i32x4.mul(m0, z0);
    const q10 = i64x2.extmul_low_i32x4_u(m1, x1);
    const q11 = i64x2.extmul_high_i32x4_u(m1, x1);
    const w10 = i32x4.mul(m1, x1);
    x1 = v128.xor(v128.xor(high(p10, p11), y1), a);
    y1 = i32x4.mul(m0, z1);
    z0 = v128.xor(v128.xor(high(q00, q01), w0), b);
    w0 = w00;
    z1 = v128.xor(v128.xor(high(q10, q11), w1), b);
    w1 = w10;
  }
  // words 4i … 4i + 3 of the counters i that are the lanes
  transpose4(x0, y0, z0, w0, out, 16);
  transpose4(x1, y1, z1, w1, out + 64, 16);
}
