// Which elements are not 0, as bits: shaders/pack-kept.wgsl.
import { MAGNITUDE } from './lib/lanes';
import { bits16 } from './lib/masks';

@inline
function sixteen(p: usize): u32 {
  const zero = f32x4.splat(0);
  return bits16(
    f32x4.ne(v128.load(p), zero),
    f32x4.ne(v128.load(p, 16), zero),
    f32x4.ne(v128.load(p, 32), zero),
    f32x4.ne(v128.load(p, 48), zero),
  );
}

/** ⌈n / 32⌉ words to `mask`: a bit for each of n f32, set where it is not 0. */
export function packKept(values: usize, n: i32, mask: usize): void {
  for (; n >= 32; n -= 32) {
    store<u32>(mask, sixteen(values) | (sixteen(values + 64) << 16));
    values += 128;
    mask += 4;
  }
  if (n == 0) return;
  let word: u32 = 0;
  for (let i = 0; i < n; i++) word |= (<u32>((load<u32>(values + (<usize>i << 2)) & MAGNITUDE) != 0)) << i;
  store<u32>(mask, word);
}
