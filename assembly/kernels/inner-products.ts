// Products of all pairs of vectors: shaders/inner-products.wgsl.
import { hasSmall } from './lib/lanes';
import { dotBlock } from './lib/sums';

/**
 * Products of all pairs of `count` vectors that lie `stride` bytes apart from `values` on, run by run of `run` elements, into
 * `sums`. `scratch`: 256 bytes and a word per vector.
 */
export function innerProducts(values: usize, stride: usize, count: i32, elements: i32, run: i32, sums: usize, scratch: usize): void {
  const flags = scratch + 256;
  let out = sums;
  for (let begin = 0; begin < elements; begin += run) {
    const n = min(run, elements - begin);
    const at = values + (<usize>begin << 2);
    for (let i = 0; i < count; i++) {
      store<u32>(flags + (<usize>i << 2), <u32>hasSmall(at + <usize>i * stride, n));
    }
    for (let i = 0; i < count; i++) {
      for (let j = i; j < count; j++) {
        const small = (load<u32>(flags + (<usize>i << 2)) | load<u32>(flags + (<usize>j << 2))) != 0;
        store<f32>(out, dotBlock(at + <usize>i * stride, at + <usize>j * stride, n, small, scratch));
        out += 4;
      }
    }
  }
}
