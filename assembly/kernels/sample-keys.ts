// Every n-th magnitude of a tensor: shaders/sample-keys.wgsl.
import { MAGNITUDE } from './lib/lanes';

/** Every `step`-th key of a tensor, by its flat index; `first`: flat index of the first value. */
export function sampleKeys(values: usize, n: i32, first: u32, step: u32, keys: usize): void {
  const end = first + <u32>n;
  for (let i: u32 = (first + step - 1) / step; i * step < end; i++) {
    store<i32>(keys + (<usize>i << 2), load<i32>(values + (<usize>(i * step - first) << 2)) & MAGNITUDE);
  }
}
