import { combine } from '../combine';
import { decode, encode } from '../encoding';
import { innerProducts } from '../products';
import { countKeys, countWindow, HISTOGRAM } from '../search';
import { selectThreshold } from '../select';
import { absoluteSum, mergeCounts } from '../statistics';
import { subtract } from '../sums';
import { applyBits, BLOCK, flushOne, MAGNITUDE } from './lanes';
import { measureUsual } from './measure-changes';
import { ALL, FOUND, LOST, MASKS, mergeUsual, OUTER, SHARED, THRESHOLDS } from './merge-changes';
import { addressOf, addTo, arePlain, CHANGE, isHalves, LEAVE, SLOT, SOURCE, storedPlain } from './stored';

// Tiles of changes as they are stored: plain blocks in one go, the others one kernel after another.

/** Bytes of a model's entry in the list of thresholds: key, cut block and quota of the outer one, then of the inner one. */
const CUT: usize = 24;
/** The key above which a threshold keeps an element of this block; −2 where its quota runs out inside. */
@inline
function above(cut: usize, block: u32): i32 {
  const key = load<i32>(cut);
  const cutBlock = load<u32>(cut, 4);
  const quota = load<i32>(cut, 8);
  const all = block < cutBlock || (block == cutBlock && quota >= BLOCK);
  return all ? key - 1 : block > cutBlock || quota == 0 ? key : -2;
}

/** Adds the counts of a plain block to those of the tile. */
function addCounts(found: usize, models: usize, how: i32, elects: bool, bounds: usize, counts: usize, kept: usize, stats: usize): void {
  addTo(counts, load<i32>(found));
  let own = found + SHARED;
  for (let i: usize = 0; i < models; i++) {
    if (elects) addTo(counts + ((1 + i) << 2), load<i32>(found + LOST + (i << 2)));
    // a threshold above 0 keeps no zeros
    if (how <= THRESHOLDS) addTo(kept + (i << 2), how == ALL || load<i32>(bounds + (i << 3)) < 0 ? BLOCK : load<i32>(own));
    own += (models - i) << 2;
  }
  for (let pair: usize = 0; pair < models * (models + 1) / 2; pair++) {
    addTo(counts + ((1 + models + pair) << 2), load<i32>(found + SHARED + (pair << 2)));
  }
  store<i32>(stats, load<i32>(found, FOUND));
  store<u64>(stats, 0, 8);
}

/**
 * Merges n elements of up to four models. `sources`: base and models (stored.ts). `cuts`: thresholds of every model
 * (`selectThreshold`), or 0; `masks`: one bit per element, models `pitch` bytes apart, or 0; the number that thresholds keep
 * is added to `kept`. `plain`: no coefficient is small or large. `sums`: products of all pairs of what stays, by block;
 * `stats` and `counts`: as those of `combine` and `mergeCounts`, but for the ballots of plain blocks, which are 0. The rest as
 * in stored-sum.ts.
 */
export function mergeChanges(
  sources: usize,
  models: i32,
  n: i32,
  firstBlock: u32,
  cuts: usize,
  masks: usize,
  pitch: usize,
  coefficients: usize,
  election: i32,
  zeroNegative: bool,
  lambda: f32,
  extreme: bool,
  plain: bool,
  packed: usize,
  dtype: i32,
  sums: usize,
  stats: usize,
  counts: usize,
  kept: usize,
  status: usize,
  wrong: usize,
  slots: usize,
  scratch: usize,
  merged: usize,
): void {
  const count = <usize>models + 1;
  const halves = dtype == 2 && isHalves(sources, count);
  // changes alone, of factors, on such a base
  const updates = dtype == 2 && isHalves(sources, 1) && arePlaced(sources, count);
  const lanes = scratch + 256;
  const bounds = scratch + 128;
  const places = scratch + 192;
  const last = <usize>models;
  for (let begin: usize = 0; begin < <usize>n; begin += BLOCK) {
    const size = min(BLOCK, n - <i32>begin);
    const to = packed + (begin << (dtype == 0 ? 2 : 1));
    const mask = masks ? masks + (begin >> 3) : 0;
    const block = firstBlock + <u32>(begin / BLOCK);
    let usual = plain && election <= 1 && size == BLOCK;
    let how = cuts ? OUTER : masks ? MASKS : ALL;
    for (let i: usize = 0; i < last && cuts; i++) {
      const from = above(cuts + i * CUT, block);
      const until = above(cuts + i * CUT + 12, block);
      if (from < -1 || until < -1) usual = false;
      if (until != MAGNITUDE) {
        how = THRESHOLDS;
        // zeros are kept then, and only the largest dropped: they are counted one by one
        if (from < 0) usual = false;
      }
      store<i32>(bounds + (i << 3), from);
      store<i32>(bounds + (i << 3), until, 4);
    }
    let done = false;
    if (usual && halves && storedPlain<u16>(sources, 0, count, begin, places)) {
      done = mergeUsual<u16, u16>(models, places, how, bounds, mask, pitch, coefficients, election != 0, zeroNegative, lambda, to, 2, sums, stats, wrong, scratch, lanes);
    }
    if (usual && updates && storedPlain<u16>(sources, 0, 1, begin, places) && slotsPlain(sources, 1, count, begin, slots, places)) {
      done = mergeUsual<u16, f32>(models, places, how, bounds, mask, pitch, coefficients, election != 0, zeroNegative, lambda, to, 2, sums, stats, wrong, scratch, lanes);
    }
    if (!done) {
      fillSlots(sources, count, begin, size, slots, status);
      if (usual && !halves && slotsPlain(sources, 0, count, begin, slots, places)) {
        done = mergeUsual<f32, f32>(models, places, how, bounds, mask, pitch, coefficients, election != 0, zeroNegative, lambda, to, dtype, sums, stats, wrong, scratch, lanes);
      }
    }
    if (done) addCounts(scratch, last, how, election != 0, bounds, counts, kept, stats);
    else {
      copyPlaced(sources, count, begin, size, slots);
      for (let i: usize = 0; i < last; i++) {
        const slot = slots + (i + 1) * SLOT;
        const cut = cuts + i * CUT;
        if (cuts) {
          const stay = selectThreshold(slot, size, block, load<u32>(cut), load<u32>(cut, 4), load<u32>(cut, 8), load<u32>(cut, 12), load<u32>(cut, 16), load<u32>(cut, 20));
          addTo(kept + (i << 2), stay);
        } else if (!masks) addTo(kept + (i << 2), size);
        else applyBits(slot, size, mask + i * pitch);
      }
      innerProducts(slots, SLOT, models + 1, size, BLOCK, sums, scratch);
      combine(slots, SLOT, models, size, coefficients, election, zeroNegative, lambda, extreme, merged, stats, scratch);
      addTo(wrong, encode(merged, to, size, dtype));
      mergeCounts(slots, SLOT, models, size, coefficients, election == 4 ? 0 : election, zeroNegative, extreme, to, dtype, counts, scratch);
    }
    sums += (count * (count + 1)) << 1;
    stats += 16;
  }
}

/** Decodes a block of every stored source into its slot, and subtracts the base where that is to be; counts what is not finite. */
function fillSlots(sources: usize, count: usize, begin: usize, n: i32, slots: usize, status: usize): void {
  for (let i: usize = 0; i < count; i++) {
    const slot = slots + i * SLOT;
    const form = load<i32>(sources + i * SOURCE, 8);
    if (form == LEAVE) continue;
    addTo(status + (i << 2), decode(addressOf(sources, i, begin), slot, n, load<i32>(sources + i * SOURCE, 4)));
    if (form == CHANGE) subtract(slot, slots, n);
  }
}

/** Copies what is f32 already into its slot, where it may be trimmed. */
function copyPlaced(sources: usize, count: usize, begin: usize, n: i32, slots: usize): void {
  for (let i: usize = 0; i < count; i++) {
    const place = placeOf(sources, i, begin, slots);
    if (place != slots + i * SLOT) memory.copy(slots + i * SLOT, place, <usize>n << 2);
  }
}

/** Where a block of a source lies as f32, once the slots are filled. */
@inline
function placeOf(sources: usize, i: usize, begin: usize, slots: usize): usize {
  return load<i32>(sources + i * SOURCE, 8) == LEAVE ? addressOf(sources, i, begin) : slots + i * SLOT;
}

/** Whether all models are f32 already. */
function arePlaced(sources: usize, count: usize): bool {
  for (let i: usize = 1; i < count; i++) if (load<i32>(sources + i * SOURCE, 8) != LEAVE) return false;
  return true;
}

/** Lists where the blocks lie as f32, from the one numbered `first` on; whether each of them is plain. */
function slotsPlain(sources: usize, first: usize, count: usize, begin: usize, slots: usize, places: usize): bool {
  for (let i = first; i < count; i++) store<usize>(places + (i << 2), placeOf(sources, i, begin, slots));
  return arePlain<f32>(places, first, count);
}

/** Bytes of an entry in the list of windows: slot, lowest and highest key, word of its counts, of its list, room there. */
const WINDOW: usize = 24;

/**
 * Measures n elements of up to four models: block sums of the products of all pairs to `sums` and, where there is an address,
 * of |τ| to `norms`, a model `spread` bytes from the next; with `masks` of what these leave. `windows`: the list of `windowed`
 * windows whose keys are counted (`countWindow`), from block `firstBlock` of `counts` on. `bins`: the histograms of the models'
 * keys by their upper 11 bits, or 0. The rest as in merge-changes.ts.
 */
export function measureChanges(
  sources: usize,
  models: i32,
  n: i32,
  firstBlock: usize,
  masks: usize,
  pitch: usize,
  windows: usize,
  windowed: i32,
  counts: usize,
  list: usize,
  bins: usize,
  sums: usize,
  norms: usize,
  spread: usize,
  status: usize,
  slots: usize,
  scratch: usize,
): void {
  const count = <usize>models + 1;
  const halves = isHalves(sources, count);
  const last = <usize>models;
  const lanes = scratch + 256;
  const places = scratch + 192;
  for (let begin: usize = 0; begin < <usize>n; begin += BLOCK) {
    const size = min(BLOCK, n - <i32>begin);
    const mask = masks ? masks + (begin >> 3) : 0;
    const block = begin / BLOCK;
    const norm = norms ? norms + (block << 2) : 0;
    let done = false;
    if (halves && size == BLOCK && storedPlain<u16>(sources, 0, count, begin, places)) {
      measureUsual<u16>(models, places, mask, pitch, sums, norm, spread, windowed != 0 || bins ? slots : 0, lanes);
      done = true;
    }
    if (!done) {
      fillSlots(sources, count, begin, size, slots, status);
      if (!halves && size == BLOCK && slotsPlain(sources, 0, count, begin, slots, places)) {
        measureUsual<f32>(models, places, mask, pitch, sums, norm, spread, 0, lanes);
        done = true;
      }
    }
    for (let k: usize = 0; k < <usize>windowed; k++) {
      const window = windows + k * WINDOW;
      const to = counts + ((<usize>load<u32>(window, 12) + 5 * (firstBlock + block)) << 2);
      const keys = list + (<usize>load<u32>(window, 16) << 2);
      countWindow(placeOf(sources, load<u32>(window), begin, slots), size, load<i32>(window, 4), load<i32>(window, 8), to, keys, load<u32>(window, 20));
    }
    for (let i: usize = 0; i < last && bins; i++) {
      countKeys(placeOf(sources, i + 1, begin, slots), size, bins + i * HISTOGRAM);
    }
    if (!done) {
      copyPlaced(sources, count, begin, size, slots);
      for (let i: usize = 0; i < last && masks; i++) applyBits(slots + (i + 1) * SLOT, size, mask + i * pitch);
      innerProducts(slots, SLOT, models + 1, size, BLOCK, sums, scratch);
      for (let i: usize = 0; i < last && norms; i++) absoluteSum(slots + (i + 1) * SLOT, size, norm + i * spread, scratch);
    }
    sums += (count * (count + 1)) << 1;
  }
}

/** The bits of element e of source i: of the base, or of a change. `scratch`: 32 bytes. */
function bitsAt(sources: usize, i: usize, e: usize, scratch: usize): u32 {
  const source = sources + i * SOURCE;
  const from = load<u32>(source);
  const form = load<i32>(source, 8);
  if (form == LEAVE) return load<u32>(from + (e << 2));
  const dtype = load<i32>(source, 4);
  decode(from + (e << (dtype == 0 ? 2 : 1)), scratch, 1, dtype);
  if (form != CHANGE) return load<u32>(scratch);
  store<u32>(scratch, bitsAt(sources, 0, e, scratch + 16), 16);
  subtract(scratch, scratch + 16, 1);
  return load<u32>(scratch);
}

/**
 * Every `step`-th key of the changes of model `i`, by its flat index; `first`: flat index of the first of n elements. As
 * `sampleKeys` takes them of a slot. `scratch`: 64 bytes.
 */
export function sampleChanges(sources: usize, i: usize, n: i32, first: u32, step: u32, keys: usize, scratch: usize): void {
  const end = first + <u32>n;
  const halves = isHalves(sources, i + 1);
  const base = load<u32>(sources);
  const from = load<u32>(sources + i * SOURCE);
  for (let k: u32 = (first + step - 1) / step; k * step < end; k++) {
    const e = k * step - first;
    let key: u32;
    if (halves) {
      const own = reinterpret<f32>(<u32>load<u16>(from + (e << 1)) << 16);
      key = reinterpret<u32>(flushOne(flushOne(own) - flushOne(reinterpret<f32>(<u32>load<u16>(base + (e << 1)) << 16))));
    } else key = bitsAt(sources, i, e, scratch);
    store<i32>(keys + (<usize>k << 2), key & MAGNITUDE);
  }
}

/** As `pickValues`, of the base and of the changes of `models`, `count` places each. `scratch`: 64 bytes. */
export function pickChanges(
  sources: usize,
  models: usize,
  n: u32,
  first: u32,
  picks: usize,
  count: usize,
  picked: usize,
  scratch: usize,
): void {
  for (let k: usize = 0; k < count; k++) {
    const e = load<u32>(picks + (k << 2)) - first;
    if (e >= n) continue;
    for (let i: usize = 0; i <= models; i++) store<u32>(picked + ((i * count + k) << 2), bitsAt(sources, i, e, scratch));
  }
}
