// Ranks of |τ| inside a row: all digits at once, and no more of them than its keys differ in.

/** Bits of a digit at most, in rows of up to `SHORT` columns and in longer ones: places are cleared and summed for each row. */
const SHORT_BITS: u32 = 9;
const LONG_BITS: u32 = 11;
const SHORT: i32 = 2048;

/** The bits in which the keys of a row differ. */
function differingBits(row: usize, cols: i32): u32 {
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
  return bits & 0x7fffffff;
}

/** How many keys have a digit less than this one: where the first of each goes. Every second one is counted apart. */
@inline
function findPlaces(row: usize, cols: i32, shift: u32, mask: u32, places: usize): void {
  const others = places + ((<usize>mask + 1) << 2);
  memory.fill(places, 0, (<usize>mask + 1) << 3);
  const end = row + (<usize>cols << 2);
  let key = row;
  for (; key + 8 <= end; key += 8) {
    const even = places + (<usize>((load<u32>(key) >> shift) & mask) << 2);
    store<u32>(even, load<u32>(even) + 1);
    const odd = others + (<usize>((load<u32>(key, 4) >> shift) & mask) << 2);
    store<u32>(odd, load<u32>(odd) + 1);
  }
  if (key < end) {
    const even = places + (<usize>((load<u32>(key) >> shift) & mask) << 2);
    store<u32>(even, load<u32>(even) + 1);
  }
  let next: u32 = 0;
  let other = others;
  for (let digit = places; digit < others; digit += 4) {
    const n = load<u32>(digit) + load<u32>(other);
    store<u32>(digit, next);
    next += n;
    other += 4;
  }
}

/** Place of the next element with the digit of this one. */
@inline
function takePlace(row: usize, index: u32, shift: u32, mask: u32, places: usize): u32 {
  const at = places + (<usize>((load<u32>(row + (<usize>index << 2)) >> shift) & mask) << 2);
  const place = load<u32>(at);
  store<u32>(at, place + 1);
  return place;
}

/** A place or an index at `at`-th place of a list of T. */
@inline
function put<T>(list: usize, at: u32, value: u32): void {
  store<T>(list + (<usize>at << alignof<T>()), <T>value);
}

/**
 * Ranks 0 … cols − 1 of the elements of a row, smallest |τ| first and among equals the last index first. `T`: u32, or u16
 * for rows of up to 2^16 columns. `spare`: as many T as `ranks`; `scratch`: 16 KiB.
 */
export function rankRow<T>(row: usize, cols: i32, spare: usize, ranks: usize, scratch: usize): void {
  const differ = differingBits(row, cols);
  if (differ == 0) {
    for (let p = 0; p < cols; p++) put<T>(ranks, p, cols - 1 - p);
    return;
  }
  const most = cols <= SHORT ? SHORT_BITS : LONG_BITS;
  const size: usize = 1 << alignof<T>();
  const end = <usize>cols << alignof<T>();
  let shift: u32 = ctz<u32>(differ);
  const span: u32 = 32 - clz<u32>(differ) - shift;
  const passes: u32 = (span + most - 1) / most;
  const width: u32 = (span + passes - 1) / passes;
  const mask: u32 = (1 << width) - 1;
  // orders change places so that the last digit is written from the other one
  let from = passes & 1 ? ranks : spare;
  let to = passes & 1 ? spare : ranks;
  for (let pass: u32 = 1; pass <= passes; pass++) {
    // the sign is above the highest digit that differs
    const bits = pass == passes ? mask >> (passes * width - span) : mask;
    findPlaces(row, cols, shift, bits, scratch);
    const swapped = from;
    from = to;
    to = swapped;
    if (pass == 1 && pass == passes) {
      for (let index = cols - 1; index >= 0; index--) put<T>(ranks, index, takePlace(row, index, shift, bits, scratch));
    } else if (pass == 1) {
      for (let index = cols - 1; index >= 0; index--) put<T>(to, takePlace(row, index, shift, bits, scratch), index);
    } else if (pass == passes) {
      for (let p = from; p < from + end; p += size) {
        const index = <u32>load<T>(p);
        put<T>(ranks, index, takePlace(row, index, shift, bits, scratch));
      }
    } else {
      for (let p = from; p < from + end; p += size) {
        const index = <u32>load<T>(p);
        put<T>(to, takePlace(row, index, shift, bits, scratch), index);
      }
    }
    shift += width;
  }
}
