// Block sums of |v|: shaders/absolute-sum.wgsl.
import { BLOCK } from './lib/lanes';
import { total } from './lib/sums';

/** Block sums of |v|; sums of one sign are never subnormal. `scratch`: 256 bytes. */
export function absoluteSum(values: usize, elements: i32, sums: usize, scratch: usize): void {
  for (let begin = 0, block: usize = 0; begin < elements; begin += BLOCK, block += 4) {
    const n = min(BLOCK, elements - begin);
    const at = values + (<usize>begin << 2);
    const rows = n >> 6;
    for (let k: usize = 0; k < 256; k += 32) {
      let s0 = f32x4.splat(0);
      let s1 = s0;
      let p = at + k;
      for (let row = 0; row < rows; row++) {
        s0 = f32x4.add(s0, f32x4.abs(v128.load(p)));
        s1 = f32x4.add(s1, f32x4.abs(v128.load(p, 16)));
        p += 256;
      }
      v128.store(scratch + k, s0);
      v128.store(scratch + k, s1, 16);
    }
    const rest = at + (<usize>rows << 8);
    for (let l: usize = 0; l < <usize>(n & 63) << 2; l += 4) {
      store<f32>(scratch + l, load<f32>(scratch + l) + abs(load<f32>(rest + l)));
    }
    store<f32>(sums + block, total(scratch, true));
  }
}
