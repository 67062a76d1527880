/**
 * The exact select on the device: by windows of keys that a sample predicts, and where it misled by histograms of keys tile
 * after tile, narrowed on the host, digit by digit.
 */

import { blockCount } from '../../backend/kernel';
import { countEqual, HISTOGRAM_WORDS, histogram, sumCopies } from '../../backend/kernels/search';
import { DIGITS, type FillKeys, findCut, type KeySearch, NO_CUT, narrow } from './radix-select';
import type { TensorTask } from './tensor-task';
import { openWindows, type WindowSearches } from './window-search';
import type { Workspace } from './workspace';

/** Adds the tile to the histograms of a digit. `work.bins` is cleared before the first tile. */
export function countDigit(
  work: Pick<Workspace, 'engine' | 'bins'>,
  searches: readonly KeySearch[],
  digit: number,
  elements: number,
): void {
  const { shift, bins, prefixShift } = DIGITS[digit]!;
  for (const [i, { buffer, offset, search, elements: own = elements }] of searches.entries()) {
    work.engine.run(histogram, {
      params: {
        elements: own,
        slot: offset,
        shift,
        bins,
        prefix_shift: prefixShift,
        prefix: search.prefix,
        out: i * HISTOGRAM_WORDS,
      },
      buffers: { values: buffer, bins: work.bins },
    });
  }
}

/** The histograms of a digit, one per search. */
export async function readDigit(
  work: Pick<Workspace, 'engine' | 'bins'>,
  searches: number,
): Promise<Uint32Array[]> {
  const [bytes] = await work.engine.read([{ buffer: work.bins, byteLength: searches * HISTOGRAM_WORDS * 4 }]);
  const counts = new Uint32Array(bytes!.buffer);
  return Array.from({ length: searches }, (_, i) =>
    sumCopies(counts.subarray(i * HISTOGRAM_WORDS, (i + 1) * HISTOGRAM_WORDS)),
  );
}

/** Finds the thresholds of searches that no earlier pass has prepared. */
export async function searchKeys(
  task: TensorTask,
  searches: readonly KeySearch[],
  fill: FillKeys,
): Promise<void> {
  if (searches.length === 0) return;
  const windows = openWindows(task, searches);
  try {
    await task.pass(async (tile, elements) => {
      fill(tile, elements);
      windows.visit(tile, elements);
      await windows.place(tile, elements);
    }, false);
    await finishSearches(task, windows, fill);
  } finally {
    windows.close();
  }
}

/**
 * After a pass that visited every tile: every search has its threshold. What lay outside a window that was placed by the
 * first tile is looked for once more, with windows by the sample of the whole tensor; what a sample cannot predict, digit
 * by digit.
 */
export async function finishSearches(
  task: TensorTask,
  windows: WindowSearches,
  fill: FillKeys,
): Promise<void> {
  let left = await windows.readCounts();
  if (left.length > 0 && task.tiles.length > 1) {
    await windows.placeAgain();
    await task.pass(async (tile, elements) => {
      fill(tile, elements);
      windows.count(tile, elements);
    }, false);
    left = await windows.readCounts();
  }
  const pass: KeyPasses['pass'] = (visit, readsBack) =>
    task.pass(async (tile, elements) => {
      fill(tile, elements);
      await visit(tile.begin, elements);
    }, readsBack);
  await searchDigits({ work: task.work, blocks: blockCount(task.plan.elements), pass }, left);
}

/** Place of the keys of a search by digits. */
interface KeyPasses {
  /** `bins` takes a histogram of every search, `sums` its equal keys by block. */
  work: Pick<Workspace, 'engine' | 'bins' | 'sums'>;
  /** Blocks of the longest search. */
  blocks: number;
  /** Puts all keys in place, part after part. @param readsBack whether every visit reads from the engine */
  pass(visit: (begin: number, elements: number) => Promise<void>, readsBack: boolean): Promise<void>;
}

/** Three digits, then the cut among equals, each by a pass: afterwards every search has its threshold. */
export async function searchDigits(keys: KeyPasses, searches: readonly KeySearch[]): Promise<void> {
  if (searches.length === 0) return;
  const { work } = keys;
  for (const digit of DIGITS.keys()) {
    work.engine.clear(work.bins);
    await keys.pass(async (_, elements) => countDigit(work, searches, digit, elements), false);
    for (const [i, counts] of (await readDigit(work, searches.length)).entries()) {
      const target = searches[i]!;
      target.search = narrow(target.search, digit, counts);
    }
  }
  for (const s of searches) s.threshold = { key: s.search.prefix, cutBlock: NO_CUT, cutQuota: 0 };
  const tied = searches.filter((s) => s.search.wanted < s.search.available);
  if (tied.length === 0) return;
  const equal = await countTies(keys, tied);
  for (const [t, s] of tied.entries()) {
    s.threshold = findCut(s.search.prefix, s.search.wanted, equal[t]!);
  }
}

/** For every search, the number of keys equal to its prefix in each block. */
async function countTies(
  { work, blocks: most, pass }: KeyPasses,
  tied: readonly KeySearch[],
): Promise<Uint32Array[]> {
  const equal = tied.map(() => new Uint32Array(most));
  await pass(async (begin, elements) => {
    const blocks = blockCount(elements);
    for (const [t, { buffer, offset, search, elements: own = elements }] of tied.entries()) {
      work.engine.run(countEqual, {
        params: { elements: own, slot: offset, key: search.prefix, out: t * blocks },
        buffers: { values: buffer, counts: work.sums },
      });
    }
    const [bytes] = await work.engine.read([{ buffer: work.sums, byteLength: tied.length * blocks * 4 }]);
    const counts = new Uint32Array(bytes!.buffer);
    const firstBlock = blockCount(begin);
    for (const [t, all] of equal.entries())
      all.set(
        counts.subarray(t * blocks, t * blocks + blockCount(tied[t]!.elements ?? elements)),
        firstBlock,
      );
  }, true);
  return equal;
}
