/**
 * A window of keys around a threshold that is not known yet, predicted from a sample of the tensor. A pass that counts the
 * keys above the window and collects those in it finds the threshold exactly, or that it lies outside.
 */
import { type Search, takeBin } from './radix-select';

/** Keys lo … hi. Those equal to an end are counted: many elements may share it. Those between are collected. */
export interface KeyWindow {
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
/** What a part of a tensor may differ from the rest, as a share of its elements. */
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
