// Trimming by the bits of |τ|: shaders/select-threshold.wgsl.
import { BLOCK, lanesSum, MAGNITUDE } from './lib/lanes';

/** The least key that passes a threshold where all of its equals pass, or none of them. */
@inline
function least(key: u32, equals: bool): u32 {
  return equals ? key : key + 1;
}

/**
 * Keeps what lies inside the outer threshold and not inside the inner one, and clears the rest; returns how much stays.
 * Elements equal to a threshold stay in blocks before its cut block, and the first `quota` of them in that block.
 */
export function selectThreshold(
  values: usize,
  elements: i32,
  firstBlock: u32,
  outerKey: u32,
  outerCut: u32,
  outerQuota: u32,
  innerKey: u32,
  innerCut: u32,
  innerQuota: u32,
): i32 {
  const magnitude = i32x4.splat(MAGNITUDE);
  let kept = 0;
  for (let begin = 0, block = firstBlock; begin < elements; begin += BLOCK, block++) {
    const n = min(BLOCK, elements - begin);
    const at = values + (<usize>begin << 2);
    let e = 0;
    let outerLeft: i32 = block < outerCut ? n : block == outerCut ? <i32>outerQuota : 0;
    let innerLeft: i32 = block < innerCut ? n : block == innerCut ? <i32>innerQuota : 0;
    const whole =
      (outerLeft == 0 || outerLeft >= n) && (innerLeft == 0 || innerLeft >= n);
    if (whole) {
      const from = i32x4.splat(least(outerKey, outerLeft > 0));
      const to = i32x4.splat(least(innerKey, innerLeft > 0));
      let found = i32x4.splat(0);
      for (; e + 4 <= n; e += 4) {
        const p = at + (<usize>e << 2);
        const x = v128.load(p);
        const key = v128.and(x, magnitude);
        const stays = v128.andnot(i32x4.ge_u(key, from), i32x4.ge_u(key, to));
        found = i32x4.sub(found, stays);
        v128.store(p, v128.and(x, stays));
      }
      kept += lanesSum(found);
    }
    for (; e < n; e++) {
      const p = at + (<usize>e << 2);
      const key = load<u32>(p) & MAGNITUDE;
      const outer = key > outerKey || (key == outerKey && outerLeft-- > 0);
      const inner = key > innerKey || (key == innerKey && innerLeft-- > 0);
      if (outer && !inner) kept++;
      else store<u32>(p, 0);
    }
  }
  return kept;
}
