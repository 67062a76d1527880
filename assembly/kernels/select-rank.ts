// Dropout by ranks: shaders/select-rank.wgsl.
import { flushOne } from './lib/lanes';
import { draws, spreadKeys } from './lib/philox';

/**
 * Keeps an element where its random word is below its rank's entry of `table`, scaled by the rank's entry behind `cols`,
 * else clears it; returns how many stay. `first`: flat index of the first element, a multiple of four, divided by four.
 * `scratch`: 32 words and a table of round keys.
 */
export function selectRank(
  values: usize,
  n: i32,
  first: u32,
  ranks: usize,
  table: usize,
  cols: i32,
  key0: u32,
  key1: u32,
  scratch: usize,
): i32 {
  const scales = table + (<usize>cols << 2);
  const keys = scratch + 128;
  spreadKeys(key0, key1, keys);
  let kept = 0;
  for (let e = 0; e < n; e++) {
    if ((e & 31) == 0) draws(first + (<u32>e >> 2), keys, scratch);
    const at = values + (<usize>e << 2);
    const rank = <usize>load<u32>(ranks + (<usize>e << 2)) << 2;
    // no branch: which elements stay cannot be predicted
    const stays = <i32>(load<u32>(scratch + (<usize>(e & 31) << 2)) < load<u32>(table + rank));
    const scaled = reinterpret<i32>(flushOne(load<f32>(at) * load<f32>(scales + rank)));
    store<i32>(at, scaled & -stays);
    kept += stays;
  }
  return kept;
}
