// Dropout at random: shaders/select-random.wgsl.
import { draws, spreadKeys } from './lib/philox';

/** Keeps the four elements at `at` whose draws are below; returns how many, with `n` < 4 only of the first n. */
@inline
function keep(at: usize, draw: usize, below: v128, n: i32): i32 {
  const stays = i32x4.lt_u(v128.load(draw), below);
  if (n >= 4) {
    v128.store(at, v128.and(v128.load(at), stays));
    return popcnt(i32x4.bitmask(stays));
  }
  const bits = i32x4.bitmask(stays);
  let kept = 0;
  for (let i = 0; i < n; i++) {
    if ((bits >> i) & 1) kept++;
    else store<u32>(at + (<usize>i << 2), 0);
  }
  return kept;
}

/**
 * Keeps an element where its random word is below `limit`, else clears it; returns how many stay.
 * @param first flat index of the first element, a multiple of four, divided by four
 * @param scratch 32 words and a table of round keys
 */
export function selectRandom(
  values: usize,
  n: i32,
  first: u32,
  limit: u32,
  key0: u32,
  key1: u32,
  scratch: usize,
): i32 {
  const below = i32x4.splat(limit);
  const keys = scratch + 128;
  spreadKeys(key0, key1, keys);
  let kept = 0;
  for (let e = 0; e < n; e += 32) {
    draws(first + (<u32>e >> 2), keys, scratch);
    const at = values + (<usize>e << 2);
    const left = min(32, n - e);
    for (let i = 0; i < left; i += 4) {
      kept += keep(at + (<usize>i << 2), scratch + (<usize>i << 2), below, left - i);
    }
  }
  return kept;
}
