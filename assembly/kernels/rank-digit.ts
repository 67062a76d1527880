// Ranks of |τ| inside rows, digit by digit: shaders/rank-digit.wgsl.

@inline
function digitAt(row: usize, index: u32, shift: u32): usize {
  return <usize>(((load<u32>(row + (<usize>index << 2)) & 0x7fffffff) >> shift) & 15) << 2;
}

/** Whether all keys of a row have the same digit. */
function isUniform(row: usize, cols: i32, shift: u32): bool {
  const first = v128.load32_splat(row);
  let differ = i32x4.splat(0);
  let e = 0;
  for (; e + 4 <= cols; e += 4) {
    differ = v128.or(differ, v128.xor(first, v128.load(row + (<usize>e << 2))));
  }
  let bits: u32 =
    i32x4.extract_lane(differ, 0) |
    i32x4.extract_lane(differ, 1) |
    i32x4.extract_lane(differ, 2) |
    i32x4.extract_lane(differ, 3);
  for (; e < cols; e++) bits |= load<u32>(row) ^ load<u32>(row + (<usize>e << 2));
  return (((bits & 0x7fffffff) >> shift) & 15) == 0;
}

/** How many keys have each digit, less than this one: where the first of each goes. Every second one is counted apart. */
@inline
function findPlaces(row: usize, cols: i32, shift: u32, places: usize): void {
  memory.fill(places, 0, 128);
  let index = 0;
  for (; index + 2 <= cols; index += 2) {
    const even = places + digitAt(row, index, shift);
    store<u32>(even, load<u32>(even) + 1);
    const odd = places + digitAt(row, index + 1, shift);
    store<u32>(odd, load<u32>(odd, 64) + 1, 64);
  }
  if (index < cols) {
    const even = places + digitAt(row, index, shift);
    store<u32>(even, load<u32>(even) + 1);
  }
  let next: u32 = 0;
  for (let digit = places; digit < places + 64; digit += 4) {
    const n = load<u32>(digit) + load<u32>(digit, 64);
    store<u32>(digit, next);
    next += n;
  }
}

/**
 * One digit, stably: `orderIn` and `orderOut` are indices in a row, the last pass writes ranks. A digit that a whole row
 * shares, as bfloat16 leaves them, changes no order. `scratch`: 32 words.
 */
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
    if (isUniform(values, cols, shift)) {
      if (isFirst || isLast) {
        for (let p = 0; p < cols; p++) {
          const index: u32 = isFirst ? cols - 1 - p : load<u32>(orderIn + (<usize>p << 2));
          if (isLast) store<u32>(orderOut + (<usize>index << 2), p);
          else store<u32>(orderOut + (<usize>p << 2), index);
        }
      } else memory.copy(orderOut, orderIn, pitch);
    } else {
      findPlaces(values, cols, shift, scratch);
      for (let p = 0; p < cols; p++) {
        const index: u32 = isFirst ? cols - 1 - p : load<u32>(orderIn + (<usize>p << 2));
        const at = scratch + digitAt(values, index, shift);
        const place = load<u32>(at);
        store<u32>(at, place + 1);
        if (isLast) store<u32>(orderOut + (<usize>index << 2), place);
        else store<u32>(orderOut + (<usize>place << 2), index);
      }
    }
    values += pitch;
    orderIn += pitch;
    orderOut += pitch;
  }
}
