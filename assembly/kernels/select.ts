import { decode } from './encoding';
import { applyBits, bits16, BLOCK, flushOne, lanesSum, MAGNITUDE } from './lib/lanes';
import { draws, spreadKeys } from './lib/philox';
import { rankRow } from './lib/ranks';
import { addressOf, addTo, CHANGE, four, isHalves, isPlain, LEAVE, SOURCE } from './lib/stored';
import { subtract } from './sums';

// Trimming by a mask of one bit per element: shaders/select/select-mask.wgsl.

/** Clears those of n f32 at `values` whose bit is not set. */
export function selectMask(values: usize, n: i32, mask: usize): void {
  applyBits(values, n, mask);
}

// Dropout at random: shaders/select/select-random.wgsl.

/**
 * A bit for each of n elements, set where its random word is below `limit`, in ⌈n / 32⌉ words; returns how many are set.
 * @param first flat index of the first element, a multiple of four, divided by four
 * @param scratch 32 words and a table of round keys
 */
export function drawMask(n: i32, first: u32, limit: u32, key0: u32, key1: u32, mask: usize, scratch: usize): i32 {
  const keys = scratch + 128;
  spreadKeys(key0, key1, keys);
  let kept = 0;
  for (; n > 0; n -= 32) {
    draws(first, keys, scratch);
    const inside: u32 = n >= 32 ? 0xffffffff : (1 << n) - 1;
    const word = below32(scratch, limit) & inside;
    store<u32>(mask, word);
    kept += popcnt(word);
    first += 8;
    mask += 4;
  }
  return kept;
}

/** Keeps an element where `drawMask` has a bit for it, else clears it; returns how many stay. `scratch`: a bit more an element. */
export function selectRandom(
  values: usize,
  n: i32,
  first: u32,
  limit: u32,
  key0: u32,
  key1: u32,
  scratch: usize,
): i32 {
  const mask = scratch + 512;
  drawMask(n, first, limit, key0, key1, mask, scratch);
  return applyBits(values, n, mask);
}

// Dropout by ranks: shaders/select/select-rank.wgsl.

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

// The same without scales: then a rank matters only to an element whose draw lies between the least and the largest entry,
// and mostly it is enough to know within a few places. A row's keys are counted in bins; what lies in the bin of the rank
// that decides is compared with the whole row.

/** Bins of short rows, and their share of an octave; of longer rows four times and twice as many. */
const SHORT_BINS: i32 = 512;
const SHORT_SHIFT: i32 = 17;
const LONG_BINS: i32 = 2048;
const LONG_SHIFT: i32 = 16;
const SHORT: i32 = 2048;

/** Elements of a row that are compared with all others at most; from more on all ranks are found. */
const MOST_COMPARED: i32 = 48;

// The scratch: draws of 32 elements behind those of up to four, round keys, undecided elements and their draws, bins.
const KEYS: usize = 160;
const LIST: usize = 512;
const BINS: usize = 1024;

/** The largest key of a row. */
function largestKey(row: usize, cols: i32): i32 {
  const magnitude = i32x4.splat(MAGNITUDE);
  let most = i32x4.splat(0);
  let e = 0;
  for (; e + 4 <= cols; e += 4) most = i32x4.max_s(most, v128.and(v128.load(row + (<usize>e << 2)), magnitude));
  let key = max(
    max(i32x4.extract_lane(most, 0), i32x4.extract_lane(most, 1)),
    max(i32x4.extract_lane(most, 2), i32x4.extract_lane(most, 3)),
  );
  for (; e < cols; e++) key = max(key, load<i32>(row + (<usize>e << 2)) & MAGNITUDE);
  return key;
}

@inline
function binOf(key: i32, shift: i32, lowest: i32): i32 {
  return max(((key & MAGNITUDE) >> shift) - lowest, 0);
}

/** How many keys of a row lie in bins below each, and in all of them, to `bins`; every second element is counted apart. */
function countBins(row: usize, cols: i32, shift: i32, lowest: i32, size: i32, bins: usize): void {
  const others = bins + (<usize>(size + 4) << 2);
  const magnitude = i32x4.splat(MAGNITUDE);
  const least = i32x4.splat(lowest);
  const zero = i32x4.splat(0);
  memory.fill(bins, 0, <usize>(2 * size + 4) << 2);
  let e = 0;
  for (; e + 4 <= cols; e += 4) {
    const key = v128.and(v128.load(row + (<usize>e << 2)), magnitude);
    const bin = i32x4.shl(i32x4.max_s(i32x4.sub(i32x4.shr_s(key, shift), least), zero), 2);
    const low = i64x2.extract_lane(bin, 0);
    const high = i64x2.extract_lane(bin, 1);
    addTo(bins + <usize>(<u32>low), 1);
    addTo(others + <usize>(low >> 32), 1);
    addTo(bins + <usize>(<u32>high), 1);
    addTo(others + <usize>(high >> 32), 1);
  }
  for (; e < cols; e++) addTo(bins + (<usize>binOf(load<i32>(row + (<usize>e << 2)), shift, lowest) << 2), 1);
  let before = zero;
  const end = <usize>size << 2;
  for (let bin: usize = 0; bin < end; bin += 16) {
    const own = i32x4.add(v128.load(bins + bin), v128.load(others + bin));
    // sums of the lanes up to each
    let sum = i32x4.add(own, v128.shuffle<u32>(zero, own, 0, 4, 5, 6));
    sum = i32x4.add(sum, v128.shuffle<u32>(zero, sum, 0, 0, 4, 5));
    v128.store(bins + bin, i32x4.add(before, i32x4.sub(sum, own)));
    before = i32x4.add(before, v128.shuffle<u32>(sum, sum, 3, 3, 3, 3));
  }
  store<i32>(bins + end, cols);
}

/** The rank of an element by comparison with its row. */
function rankOf(row: usize, cols: i32, index: i32): i32 {
  const magnitude = i32x4.splat(MAGNITUDE);
  const own = load<i32>(row + (<usize>index << 2)) & MAGNITUDE;
  let below = i32x4.splat(0);
  let rank = 0;
  const bound = i32x4.splat(own);
  let e = 0;
  for (const end = index & ~3; e < end; e += 4) {
    below = i32x4.sub(below, i32x4.lt_s(v128.and(v128.load(row + (<usize>e << 2)), magnitude), bound));
  }
  for (const end = min(e + 4, cols); e < end; e++) {
    const key = load<i32>(row + (<usize>e << 2)) & MAGNITUDE;
    if (key < own || (key == own && e > index)) rank++;
  }
  // equals of a later index rank lower
  for (; e + 4 <= cols; e += 4) {
    below = i32x4.sub(below, i32x4.le_s(v128.and(v128.load(row + (<usize>e << 2)), magnitude), bound));
  }
  for (; e < cols; e++) if ((load<i32>(row + (<usize>e << 2)) & MAGNITUDE) <= own) rank++;
  return (
    rank +
    i32x4.extract_lane(below, 0) +
    i32x4.extract_lane(below, 1) +
    i32x4.extract_lane(below, 2) +
    i32x4.extract_lane(below, 3)
  );
}

/** Which of 32 draws are below the limit, as bits. */
@inline
function below32(draw: usize, limit: u32): u32 {
  const bound = i32x4.splat(limit);
  const low = bits16(
    i32x4.lt_u(v128.load(draw), bound),
    i32x4.lt_u(v128.load(draw, 16), bound),
    i32x4.lt_u(v128.load(draw, 32), bound),
    i32x4.lt_u(v128.load(draw, 48), bound),
  );
  const high = bits16(
    i32x4.lt_u(v128.load(draw, 64), bound),
    i32x4.lt_u(v128.load(draw, 80), bound),
    i32x4.lt_u(v128.load(draw, 96), bound),
    i32x4.lt_u(v128.load(draw, 112), bound),
  );
  return low | (high << 16);
}

/** Makes the draws of a row's next 32 elements; `odd`: how many of the first counter's words belong to the row before. */
@inline
function drawNext(counter: u32, odd: usize, scratch: usize): void {
  if (odd == 0) draws(counter, scratch + KEYS, scratch);
  else {
    // the first four are the last ones of the draws before
    v128.store(scratch, v128.load(scratch, 128));
    draws(counter + 1, scratch + KEYS, scratch + 16);
  }
}

/** Bits of a row by the ranks of all of its elements, 16 bits each in `bits` before the bits take their place. */
function decideByRanks(row: usize, cols: i32, first: u64, bits: usize, table: usize, scratch: usize): void {
  const odd = <usize>first & 3;
  rankRow<u16>(row, cols, bits + (<usize>cols << 1), bits, scratch + BINS);
  if (odd) draws(<u32>(first >> 2) - 7, scratch + KEYS, scratch + 16);
  for (let e = 0; e < cols; e += 32) {
    drawNext(<u32>((first + e) >> 2), odd, scratch);
    let word: u32 = 0;
    for (let i = 0, n = min(32, cols - e); i < n; i++) {
      const rank = <usize>load<u16>(bits + (<usize>(e + i) << 1));
      const draw = load<u32>(scratch + ((odd + i) << 2));
      word |= (<u32>(draw < load<u32>(table + (rank << 2)))) << i;
    }
    store<u32>(bits + (<usize>e >> 3), word);
  }
}

/** Bits of a row by its bins; false where too many elements lie where it is decided. */
function decideByBins(row: usize, cols: i32, first: u64, bits: usize, table: usize, scratch: usize): bool {
  const size = cols <= SHORT ? SHORT_BINS : LONG_BINS;
  const shift = cols <= SHORT ? SHORT_SHIFT : LONG_SHIFT;
  const lowest = max((largestKey(row, cols) >> shift) - (size - 1), 0);
  const bins = scratch + BINS;
  countBins(row, cols, shift, lowest, size, bins);
  const surely = load<u32>(table);
  const maybe = load<u32>(table + (<usize>(cols - 1) << 2));
  const odd = <usize>first & 3;
  const draw = scratch + (odd << 2);
  let listed = 0;
  if (odd) draws(<u32>(first >> 2) - 7, scratch + KEYS, scratch + 16);
  for (let e = 0; e < cols; e += 32) {
    drawNext(<u32>((first + e) >> 2), odd, scratch);
    const inside: u32 = cols - e >= 32 ? 0xffffffff : (1 << (cols - e)) - 1;
    let word = below32(draw, surely) & inside;
    let open = below32(draw, maybe) & inside & ~word;
    let close: u32 = 0;
    while (open) {
      const i = ctz(open);
      open &= open - 1;
      const bin = bins + (<usize>binOf(load<i32>(row + (<usize>(e + i) << 2)), shift, lowest) << 2);
      const own = load<u32>(draw + (<usize>i << 2));
      const lowestRank = <usize>load<u32>(bin) << 2;
      const highestRank = (<usize>load<u32>(bin, 4) - 1) << 2;
      // no branch: which elements stay cannot be predicted
      const stays = <u32>(own < load<u32>(table + lowestRank));
      word |= stays << i;
      close |= (<u32>(own < load<u32>(table + highestRank)) & ~stays) << i;
    }
    store<u32>(bits + (<usize>e >> 3), word);
    while (close) {
      const i = ctz(close);
      close &= close - 1;
      if (listed == MOST_COMPARED) return false;
      const entry = scratch + LIST + (<usize>listed << 3);
      listed++;
      store<i32>(entry, e + i);
      store<u32>(entry, load<u32>(draw + (<usize>i << 2)), 4);
    }
  }
  for (let k = 0; k < listed; k++) {
    const entry = scratch + LIST + (<usize>k << 3);
    const index = load<i32>(entry);
    const rank = <usize>rankOf(row, cols, index);
    if (load<u32>(entry, 4) >= load<u32>(table + (rank << 2))) continue;
    const word = bits + (<usize>(index >> 5) << 2);
    store<u32>(word, load<u32>(word) | (1 << (index & 31)));
  }
  return true;
}

/** Bits of a row, set where an element stays. */
function decide(row: usize, cols: i32, first: u64, bits: usize, table: usize, scratch: usize): void {
  if (!decideByBins(row, cols, first, bits, table, scratch)) decideByRanks(row, cols, first, bits, table, scratch);
}

/**
 * Keeps an element of whole rows where its random word is below its rank's entry of `table`, else clears it; returns how
 * many stay. Entries grow with the rank. `first`: flat index of the first element; `spare`: a word an element; `cols` is
 * below 2^16; `scratch`: 18 KiB.
 */
export function selectRows(
  values: usize,
  elements: i32,
  first: f64,
  cols: i32,
  spare: usize,
  table: usize,
  key0: u32,
  key1: u32,
  scratch: usize,
): i32 {
  spreadKeys(key0, key1, scratch + KEYS);
  let kept = 0;
  for (let begin = 0; begin < elements; begin += cols) {
    const row = values + (<usize>begin << 2);
    const bits = spare + (<usize>begin << 2);
    decide(row, cols, <u64>first + begin, bits, table, scratch);
    kept += applyBits(row, cols, bits);
  }
  return kept;
}

/** Where a row of the changes of model `i` lies as f32; as they are stored, they go to `row`, and `spare` is as long. */
function takeRow(sources: usize, i: usize, begin: usize, cols: i32, row: usize, spare: usize): usize {
  const own = addressOf(sources, i, begin);
  const base = addressOf(sources, 0, begin);
  const source = sources + i * SOURCE;
  const form = load<i32>(source, 8);
  if (form == LEAVE) return own;
  if (form == CHANGE && isHalves(sources, 1) && isHalves(source, 1) && (cols & 15) == 0 && isPlain<u16>(own, cols) && isPlain<u16>(base, cols)) {
    for (let e: usize = 0; e < <usize>cols << 1; e += 8) {
      v128.store(row + (e << 1), f32x4.sub(four<u16>(own + e), four<u16>(base + e)));
    }
    return row;
  }
  decode(own, row, cols, load<i32>(source, 4));
  if (form != CHANGE) return row;
  decode(base, spare, cols, load<i32>(sources, 4));
  subtract(row, spare, cols);
  return row;
}

/** Puts n bits behind the first `at` ones of a mask; returns how many are set. What is behind them is lost. */
function putBits(bits: usize, n: i32, mask: usize, at: u32): i32 {
  const shift = at & 31;
  let word = mask + <usize>((at >> 5) << 2);
  let before: u64 = load<u32>(word) & ((1 << shift) - 1);
  let set = 0;
  for (let left = n; left > 0; left -= 32) {
    const own = load<u32>(bits);
    set += popcnt(own);
    before |= <u64>own << shift;
    store<u32>(word, <u32>before);
    before >>= 32;
    bits += 4;
    word += 4;
  }
  if (((at + n - 1) >> 5) > ((at >> 5) + ((n - 1) >> 5))) store<u32>(word, <u32>before);
  return set;
}

/**
 * Decides on n elements of whole rows as `selectRows` does, by the changes of model `i` as they are stored (`sources`:
 * lib/stored.ts): a bit for each behind the first `at` ones of `mask`; returns how many are set. `row`: two words for each element of a row.
 */
export function drawRanks(
  sources: usize,
  i: usize,
  n: i32,
  first: f64,
  cols: i32,
  row: usize,
  table: usize,
  key0: u32,
  key1: u32,
  mask: usize,
  at: u32,
  scratch: usize,
): i32 {
  spreadKeys(key0, key1, scratch + KEYS);
  const spare = row + (<usize>cols << 2);
  let kept = 0;
  for (let begin = 0; begin < n; begin += cols) {
    const changes = takeRow(sources, i, begin, cols, row, spare);
    decide(changes, cols, <u64>first + begin, spare, table, scratch);
    kept += putBits(spare, cols, mask, at + begin);
  }
  return kept;
}

// Trimming by the bits of |τ|: shaders/select/select-threshold.wgsl.

/** The least key that passes a threshold where all of its equals pass, or none of them. */
@inline
function least(key: u32, equals: bool): u32 {
  return equals ? key : key + 1;
}

/**
 * Keeps elements inside the outer threshold but not the inner one, and clears the rest; returns how many stay.
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
