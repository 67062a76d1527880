// Keys in relation to a window of keys: shaders/count-window.wgsl.
import { BLOCK, lanesSum, MAGNITUDE } from './lib/lanes';

/**
 * Five words a block to `counts`: keys above `hi`, equal to it, equal to `lo`, place in the list, keys between. The latter
 * are put behind the counter at `list` while there is `room`.
 */
export function countWindow(
  values: usize,
  elements: i32,
  lo: i32,
  hi: i32,
  counts: usize,
  list: usize,
  room: u32,
): void {
  const magnitude = i32x4.splat(MAGNITUDE);
  const low = i32x4.splat(lo);
  const high = i32x4.splat(hi);
  const entries = list + 4;
  let next = load<u32>(list);
  for (let begin = 0; begin < elements; begin += BLOCK) {
    const n = min(BLOCK, elements - begin);
    const at = values + (<usize>begin << 2);
    const first = next;
    let above = i32x4.splat(0);
    let highest = above;
    let lowest = above;
    let e = 0;
    for (; e + 8 <= n; e += 8) {
      const p = at + (<usize>e << 2);
      const x = v128.and(v128.load(p), magnitude);
      const y = v128.and(v128.load(p, 16), magnitude);
      const aboveX = i32x4.gt_s(x, high);
      const aboveY = i32x4.gt_s(y, high);
      const highX = i32x4.eq(x, high);
      const highY = i32x4.eq(y, high);
      above = i32x4.sub(above, i32x4.add(aboveX, aboveY));
      highest = i32x4.sub(highest, i32x4.add(highX, highY));
      lowest = i32x4.sub(lowest, i32x4.add(i32x4.eq(x, low), i32x4.eq(y, low)));
      const betweenX = v128.andnot(i32x4.gt_s(x, low), v128.or(aboveX, highX));
      const betweenY = v128.andnot(i32x4.gt_s(y, low), v128.or(aboveY, highY));
      if (!v128.any_true(v128.or(betweenX, betweenY))) continue;
      let bits = i32x4.bitmask(betweenX) | (i32x4.bitmask(betweenY) << 4);
      do {
        if (next < room) store<i32>(entries + (<usize>next << 2), load<i32>(p + (<usize>ctz(bits) << 2)) & MAGNITUDE);
        next++;
        bits &= bits - 1;
      } while (bits);
    }
    let aboves = lanesSum(above);
    let highests = lanesSum(highest);
    let lowests = lanesSum(lowest);
    for (; e < n; e++) {
      const key = load<i32>(at + (<usize>e << 2)) & MAGNITUDE;
      if (key > hi) aboves++;
      if (key == hi) highests++;
      if (key == lo) lowests++;
      if (key > lo && key < hi) {
        if (next < room) store<i32>(entries + (<usize>next << 2), key);
        next++;
      }
    }
    store<i32>(counts, aboves);
    store<i32>(counts, highests, 4);
    store<i32>(counts, lowests, 8);
    store<u32>(counts, first, 12);
    store<u32>(counts, next - first, 16);
    counts += 20;
  }
  store<u32>(list, next);
}
