// Elements with one magnitude: shaders/count-equal.wgsl.
import { BLOCK, lanesSum, MAGNITUDE } from './lib/lanes';

/** Per block, the number of elements with bits(|τ|) = key. */
export function countEqual(values: usize, elements: i32, key: u32, counts: usize): void {
  const wanted = i32x4.splat(key);
  const magnitude = i32x4.splat(MAGNITUDE);
  for (let begin = 0, out = counts; begin < elements; begin += BLOCK, out += 4) {
    const n = min(BLOCK, elements - begin);
    const at = values + (<usize>begin << 2);
    let found = i32x4.splat(0);
    let e = 0;
    for (; e + 8 <= n; e += 8) {
      const p = at + (<usize>e << 2);
      found = i32x4.sub(found, i32x4.eq(v128.and(v128.load(p), magnitude), wanted));
      found = i32x4.sub(found, i32x4.eq(v128.and(v128.load(p, 16), magnitude), wanted));
    }
    let sum = lanesSum(found);
    for (; e < n; e++) if ((load<u32>(at + (<usize>e << 2)) & MAGNITUDE) == key) sum++;
    store<u32>(out, sum);
  }
}
