// Ranks of |τ| inside rows, digit by digit, and dropout by them: shaders/rank-digit.wgsl, shaders/select-rank.wgsl.
import { flushOne } from './lanes';
import { draws } from './random';

@inline
function digitAt(row: usize, index: u32, shift: u32): usize {
  return <usize>(((load<u32>(row + (<usize>index << 2)) & 0x7fffffff) >> shift) & 15) << 2;
}

/** One digit, stably: `orderIn` and `orderOut` are indices in a row, the last pass writes ranks. `scratch`: 16 words. */
export function rankDigit(
  values: usize,
  elements: i32,
  cols: i32,
  shift: u32,
  isFirst: bool,
  isLast: bool,
  orderIn: usize,
  orderOut: usize,
  scratch: usize,
): void {
  const pitch = <usize>cols << 2;
  for (let begin = 0; begin < elements; begin += cols) {
    memory.fill(scratch, 0, 64);
    for (let index = 0; index < cols; index++) {
      const at = scratch + digitAt(values, index, shift);
      store<u32>(at, load<u32>(at) + 1);
    }
    let next: u32 = 0;
    for (let digit: usize = 0; digit < 64; digit += 4) {
      const n = load<u32>(scratch + digit);
      store<u32>(scratch + digit, next);
      next += n;
    }
    for (let p = 0; p < cols; p++) {
      const index: u32 = isFirst ? cols - 1 - p : load<u32>(orderIn + (<usize>p << 2));
      const at = scratch + digitAt(values, index, shift);
      const place = load<u32>(at);
      store<u32>(at, place + 1);
      if (isLast) store<u32>(orderOut + (<usize>index << 2), place);
      else store<u32>(orderOut + (<usize>place << 2), index);
    }
    values += pitch;
    orderIn += pitch;
    orderOut += pitch;
  }
}

/**
 * Keeps an element where its random word is below its rank's entry of `table`, scaled by the rank's entry behind `cols`,
 * else clears it; returns how many stay. `first`: flat index of the first element, a multiple of four, divided by four.
 * `scratch`: 16 words.
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
  let kept = 0;
  for (let e = 0; e < n; e++) {
    if ((e & 15) == 0) draws(first + (<u32>e >> 2), key0, key1, scratch);
    const at = values + (<usize>e << 2);
    const rank = <usize>load<u32>(ranks + (<usize>e << 2)) << 2;
    if (load<u32>(scratch + (<usize>(e & 15) << 2)) < load<u32>(table + rank)) {
      kept++;
      store<f32>(at, flushOne(load<f32>(at) * load<f32>(scales + rank)));
    } else store<u32>(at, 0);
  }
  return kept;
}
