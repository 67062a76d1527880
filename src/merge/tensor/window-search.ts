/** The exact select by windows of keys: a sample predicts where a threshold lies, one pass over the tensor proves it. */
import type { BackendBuffer } from '../../backend/backend';
import { blockCount } from '../../backend/kernel';
import { WINDOW_WORDS } from '../../backend/kernels/products';
import { countWindow, sampleChanges, sampleKeys, WINDOW_COUNTS } from '../../backend/kernels/search';
import { findCut, type KeySearch, NO_CUT, type Search, takeBin } from './radix-select';
import { runMeasure, type WindowList } from './stored-changes';
import type { TensorTask } from './tensor-task';
import type { Tile } from './tiles';

// A window of keys around a threshold that is not known yet, predicted from a sample of the tensor. A pass that counts the
// keys above the window and collects those in it finds the threshold exactly, or that it lies outside.

/** Keys lo … hi. Those equal to an end are counted: many elements may share it. Those between are collected. */
interface KeyWindow {
  lo: number;
  hi: number;
  /** How many keys between the ends are collected at most. */
  room: number;
}

/** Most keys of a sample, and most that are collected: 8 MiB each. */
const MOST_SAMPLED = 2 ** 21;
const MOST_COLLECTED = 2 ** 21;

/** Every how many elements one is sampled. Steps are primes: a sample visits all columns of a matrix alike. */
export function sampleStep(elements: number): number {
  if (elements < 2 ** 15) return 1;
  if (elements < 2 ** 19) return 13;
  if (elements < 2 ** 21) return 61;
  return [127, 251, 509, 1021].find((step) => elements / step <= MOST_SAMPLED) ?? 2039;
}

/** Standard deviations of the threshold's rank in the sample that the window leaves on both sides. */
const DEVIATIONS = 3;
/** Allowed deviation of a part of a tensor from the rest, as a share of its elements. */
const ALLOWANCE = 0.005;

/**
 * The window in which the threshold of `search` lies, as far as a sample of every n-th of the first `seen` elements of
 * `total` can tell.
 */
export function windowOf(
  sample: Uint32Array,
  { wanted }: Pick<Search, 'wanted'>,
  seen: number,
  total: number,
): KeyWindow {
  const m = sample.length;
  const share = wanted / total;
  // of a sample without repetition; nothing is left to chance where it is the whole
  const variance = share * (1 - share) * m * (1 - Math.min(1, m / seen));
  const wished = 1 + DEVIATIONS * Math.sqrt(variance) + (seen < total ? ALLOWANCE * m : 0);
  const deviation = Math.max(1, Math.min(wished, (0.4 * MOST_COLLECTED * m) / total));
  const highest = Math.floor(share * m - deviation);
  const lowest = Math.ceil(share * m + deviation);
  return {
    hi: highest < 1 ? 0x7fffffff : selectKey(sample, highest).prefix,
    lo: lowest > m ? 0 : selectKey(sample, lowest).prefix,
    room: Math.min(total, Math.ceil((2.5 * deviation * total) / m) + 4096),
  };
}

/** Bins of one pass of `selectKey`. */
const BINS = 2048;

/**
 * The `wanted`-th largest of the keys, as a search that is finished. Each pass counts the keys left in 2048 bins and goes on
 * with those of one bin.
 * @param lo lowest key there may be
 * @param hi highest
 */
export function selectKey(keys: Uint32Array, wanted: number, lo = 0, hi = 0x7fffffff): Search {
  let search: Search = { prefix: lo, wanted, available: keys.length };
  const counts = new Uint32Array(BINS);
  for (let width = 32 - Math.clz32(hi - lo); width > 0; ) {
    const shift = Math.max(0, width - 11);
    const from = search.prefix;
    counts.fill(0);
    for (let i = 0; i < keys.length; i++) counts[(keys[i]! - from) >>> shift]!++;
    const { prefix: bin, wanted: left, available } = takeBin(counts, search.wanted);
    search = { prefix: from + bin * 2 ** shift, wanted: left, available };
    width = shift;
    if (shift === 0) break;
    const inside = new Uint32Array(available);
    let n = 0;
    for (let i = 0; i < keys.length; i++) if ((keys[i]! - from) >>> shift === bin) inside[n++] = keys[i]!;
    keys = inside;
  }
  return search;
}

/** The windows of a tensor's searches, whose keys lie in the slots or at each search's own place. */
export interface WindowSearches {
  /** The windows that are known, for the kernel that counts them in a tile as it is stored. */
  readonly list: WindowList | undefined;
  /** Samples a tile, and counts it where windows are known: all tiles but the first. Enqueues only. */
  visit(tile: Tile, elements: number): void;
  /**
   * After a `visit` of the first tile, with its keys still in place: sets the windows and counts it. A tile as it is stored is
   * counted by whoever takes the `list`.
   */
  place(tile: Tile, elements: number): Promise<void>;
  /** Gives all searches that found nothing a window by the sample of the whole tensor. */
  placeAgain(): Promise<void>;
  /** Counts a tile. */
  count(tile: Tile, elements: number): void;
  /** Ends a pass: sets the thresholds that lie in their windows. @returns the searches that are left */
  readCounts(): Promise<KeySearch[]>;
  close(): void;
}

interface PlacedWindow {
  search: KeySearch;
  window: KeyWindow;
  /** Word of its list. */
  base: number;
}

/** @throws AmalgamError `GpuOutOfMemory` */
export function openWindows(task: TensorTask, searches: readonly KeySearch[]): WindowSearches {
  const { engine, stride, values, inputs } = task.work;
  const isStored = task.form === 'stored changes';
  const total = task.plan.elements;
  const blocks = blockCount(total);
  const step = sampleStep(total);
  const sampled = Math.ceil(total / step);
  let left = [...searches];
  let placed: PlacedWindow[] = [];
  let list: BackendBuffer | undefined;
  let windows: BackendBuffer | undefined;
  const samples = engine.allocate(searches.length * sampled * 4, 'sampled keys');
  const counts = engine.allocate(searches.length * blocks * WINDOW_COUNTS * 4, 'window counts');

  /** Windows by the sample of the first `seen` elements, and room for what they collect. */
  const placeAt = async (seen: number) => {
    const byteLength = Math.ceil(seen / step) * 4;
    const keys = await engine.read(
      left.map((s) => ({ buffer: samples, byteOffset: searches.indexOf(s) * sampled * 4, byteLength })),
    );
    let words = 0;
    placed = left.map((search, i) => {
      const window = windowOf(new Uint32Array(keys[i]!.buffer), search.search, seen, total);
      const base = words;
      words += 1 + window.room;
      return { search, window, base };
    });
    if (list) engine.free(list);
    list = engine.allocate(words * 4, 'keys in windows');
    if (!isStored) return;
    if (windows) engine.free(windows);
    const entries = placed.map(({ search, window: { lo, hi, room }, base }, i) => [
      ...[search.offset / stride, lo, hi],
      ...[i * blocks * WINDOW_COUNTS, base, room],
    ]);
    windows = engine.allocate(entries.length * WINDOW_WORDS * 4, 'windows');
    engine.write(windows, 0, new Uint8Array(Uint32Array.from(entries.flat()).buffer));
  };
  const listed = (): WindowList | undefined =>
    windows && list ? { windows, length: placed.length, counts, list } : undefined;
  const count = (tile: Tile, elements: number) => {
    if (isStored) {
      runMeasure(task, tile, elements, { sums: task.work.sums }, { windows: listed() });
      return;
    }
    for (const [i, { search, window, base }] of placed.entries()) {
      engine.run(countWindow, {
        params: {
          elements,
          slot: search.offset,
          lo: window.lo,
          hi: window.hi,
          out: (i * blocks + blockCount(tile.begin)) * WINDOW_COUNTS,
          base,
          room: window.room,
        },
        buffers: { values: search.buffer, counts, list: list! },
      });
    }
  };

  return {
    get list() {
      return listed();
    },
    visit(tile, elements) {
      for (const [i, { buffer, offset }] of searches.entries()) {
        const params = { elements, first: tile.begin, step, out: i * sampled };
        if (isStored) {
          engine.run(sampleChanges, {
            params: { ...params, stride, slot: offset / stride },
            buffers: { raw: task.raw, inputs, values, keys: samples },
          });
        } else {
          engine.run(sampleKeys, {
            params: { ...params, slot: offset },
            buffers: { values: buffer, keys: samples },
          });
        }
      }
      if (tile.begin > 0 && !isStored) count(tile, elements);
    },
    async place(tile, elements) {
      if (tile.begin > 0 || left.length === 0) return;
      await placeAt(tile.end);
      if (!isStored) count(tile, elements);
    },
    placeAgain: () => placeAt(total),
    count,
    async readCounts() {
      if (left.length === 0) return left;
      const [countBytes, listBytes] = await engine.read([
        { buffer: counts, byteLength: placed.length * blocks * WINDOW_COUNTS * 4 },
        { buffer: list!, byteLength: list!.byteLength },
      ]);
      const found = new Uint32Array(countBytes!.buffer);
      const keys = new Uint32Array(listBytes!.buffer);
      const width = blocks * WINDOW_COUNTS;
      left = placed.flatMap(({ search, window, base }, i) => {
        const counted = found.subarray(i * width, (i + 1) * width);
        return narrowSearch(search, window, counted, keys.subarray(base)) ? [] : [search];
      });
      return left;
    },
    close() {
      for (const buffer of [samples, counts, list, windows]) if (buffer) engine.free(buffer);
    },
  };
}

/**
 * Finishes a search whose threshold lies in its window.
 * @param counts five words for every block of the tensor
 * @param list how many keys lie between the window's ends, then those
 * @returns false where the threshold lies outside, or among more keys than could be collected
 */
function narrowSearch(
  target: KeySearch,
  { lo, hi, room }: KeyWindow,
  counts: Uint32Array,
  list: Uint32Array,
): boolean {
  const { wanted } = target.search;
  const between = list[0]!;
  const above = countOf(counts, 0);
  const highest = countOf(counts, 1);
  const lowest = lo === hi ? 0 : countOf(counts, 2);
  let left = wanted - above;
  if (left <= 0) return false;
  if (left <= highest) {
    finish(target, { prefix: hi, wanted: left, available: highest }, () => perBlock(counts, 1));
    return true;
  }
  left -= highest;
  if (left <= between) {
    if (between > room) return false;
    const keys = list.subarray(1, 1 + between);
    const search = selectKey(keys, left, lo, hi);
    finish(target, search, () => equalInBlocks(keys, counts, search.prefix));
    return true;
  }
  left -= between;
  if (left > lowest) return false;
  finish(target, { prefix: lo, wanted: left, available: lowest }, () => perBlock(counts, 2));
  return true;
}

function finish(target: KeySearch, search: Search, equal: () => Uint32Array): void {
  const { prefix, wanted, available } = search;
  target.search = search;
  target.threshold =
    wanted < available ? findCut(prefix, wanted, equal()) : { key: prefix, cutBlock: NO_CUT, cutQuota: 0 };
}

function perBlock(counts: Uint32Array, word: number): Uint32Array {
  return Uint32Array.from(
    { length: counts.length / WINDOW_COUNTS },
    (_, block) => counts[block * WINDOW_COUNTS + word]!,
  );
}

function countOf(counts: Uint32Array, word: number): number {
  let sum = 0;
  for (let at = word; at < counts.length; at += WINDOW_COUNTS) sum += counts[at]!;
  return sum;
}

/** How many of the collected keys of each block are equal to `key`. */
function equalInBlocks(keys: Uint32Array, counts: Uint32Array, key: number): Uint32Array {
  const equal = new Uint32Array(counts.length / WINDOW_COUNTS);
  for (let block = 0; block < equal.length; block++) {
    const place = counts[block * WINDOW_COUNTS + 3]!;
    const end = place + counts[block * WINDOW_COUNTS + 4]!;
    let n = 0;
    for (let i = place; i < end; i++) if (keys[i] === key) n++;
    equal[block] = n;
  }
  return equal;
}
