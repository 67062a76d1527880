// f32 to the output dtype: shaders/encode.wgsl and shaders/lib/pack.wgsl.
import { canonical, EXPONENT, narrowBf16x4, narrowF16x4, notFinite } from './lib/half';
import { lanesSum } from './lib/lanes';

export { changeSquares } from './lib/sums';

@inline
function narrow(values: usize, out: usize, n: i32, bf16: bool): i32 {
  const special = i32x4.splat(bf16 ? 0x7f80 : 0x7c00);
  let bad = i32x4.splat(0);
  let e = 0;
  for (; e + 8 <= n; e += 8) {
    const p = values + (<usize>e << 2);
    const x = canonical(v128.load(p));
    const y = canonical(v128.load(p, 16));
    const low = bf16 ? narrowBf16x4(x) : narrowF16x4(x);
    const high = bf16 ? narrowBf16x4(y) : narrowF16x4(y);
    bad = i32x4.sub(bad, i32x4.eq(v128.and(low, special), special));
    bad = i32x4.sub(bad, i32x4.eq(v128.and(high, special), special));
    v128.store(out + (<usize>e << 1), i16x8.narrow_i32x4_u(low, high));
  }
  let count = lanesSum(bad);
  for (; e < n; e++) {
    const x = canonical(v128.load32_zero(values + (<usize>e << 2)));
    const h = i32x4.extract_lane(bf16 ? narrowBf16x4(x) : narrowF16x4(x), 0);
    const mask = bf16 ? 0x7f80 : 0x7c00;
    if ((h & mask) == mask) count++;
    store<u16>(out + (<usize>e << 1), <u16>h);
  }
  if (n & 1) store<u16>(out + (<usize>n << 1), 0);
  return count;
}

/** n f32 at `values` to the output dtype at `out`, rounded once to nearest even; returns how many are not finite. */
export function encode(values: usize, out: usize, n: i32, dtype: i32): i32 {
  if (dtype == 2) return narrow(values, out, n, true);
  if (dtype == 1) return narrow(values, out, n, false);
  let bad = i32x4.splat(0);
  let e = 0;
  for (; e + 4 <= n; e += 4) {
    const bits = canonical(v128.load(values + (<usize>e << 2)));
    bad = i32x4.sub(bad, notFinite(bits));
    v128.store(out + (<usize>e << 2), bits);
  }
  let count = lanesSum(bad);
  for (; e < n; e++) {
    let bits = load<u32>(values + (<usize>e << 2));
    if ((bits & 0x7fffffff) > EXPONENT) bits = 0x7fc00000;
    if ((bits & EXPONENT) == EXPONENT) count++;
    store<u32>(out + (<usize>e << 2), bits);
  }
  return count;
}
