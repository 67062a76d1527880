/**
 * The exact select on the device: by windows of keys that a sample predicts, and where it misled by histograms of keys tile
 * after tile, narrowed on the host, digit by digit.
 */

import { blockCount } from '../../backend/kernel';
import { countEqual } from '../../backend/kernels/count-equal';
import { HISTOGRAM_ELEMENTS, HISTOGRAM_WORDS, histogram, sumCopies } from '../../backend/kernels/histogram';
import type { FillKeys, KeySearch } from './key-search';
import { DIGITS, findCut, NO_CUT, narrow } from './radix-select';
import type { TensorTask } from './tensor-task';
import { openWindows, type WindowSearches } from './window-search';
import type { Workspace } from './workspace';

/** Adds the tile to the histograms of a digit. `work.bins` is cleared before the first tile. */
export function countDigit(
  work: Workspace,
  searches: readonly KeySearch[],
  digit: number,
  elements: number,
): void {
  const { shift, bins, prefixShift } = DIGITS[digit]!;
  for (const [i, { buffer, offset, search }] of searches.entries()) {
    work.engine.run(histogram, {
      params: {
        elements,
        slot: offset,
        shift,
        bins,
        prefix_shift: prefixShift,
        prefix: search.prefix,
        out: i * HISTOGRAM_WORDS,
      },
      buffers: { values: buffer, bins: work.bins },
      groups: Math.ceil(elements / HISTOGRAM_ELEMENTS),
      elements,
    });
  }
}

/** The histograms of a digit, one per search. */
export async function readDigit(work: Workspace, searches: number): Promise<Uint32Array[]> {
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
  await searchDigits(task, left, fill);
}

/** Three digits, then the cut among equals, each by a pass. */
async function searchDigits(task: TensorTask, searches: readonly KeySearch[], fill: FillKeys): Promise<void> {
  if (searches.length === 0) return;
  const { work } = task;
  for (const digit of DIGITS.keys()) {
    work.engine.clear(work.bins);
    await task.pass(async (tile, elements) => {
      fill(tile, elements);
      countDigit(work, searches, digit, elements);
    }, false);
    for (const [i, counts] of (await readDigit(work, searches.length)).entries()) {
      const target = searches[i]!;
      target.search = narrow(target.search, digit, counts);
    }
  }
  for (const s of searches) s.threshold = { key: s.search.prefix, cutBlock: NO_CUT, cutQuota: 0 };
  const tied = searches.filter((s) => s.search.wanted < s.search.available);
  if (tied.length === 0) return;
  const equal = await countTies(task, tied, fill);
  for (const [t, s] of tied.entries()) {
    s.threshold = findCut(s.search.prefix, s.search.wanted, equal[t]!);
  }
}

/** For every search, the number of keys equal to its prefix in each block of the tensor. */
async function countTies(
  task: TensorTask,
  tied: readonly KeySearch[],
  fill: FillKeys,
): Promise<Uint32Array[]> {
  const { work } = task;
  const equal = tied.map(() => new Uint32Array(blockCount(task.plan.elements)));
  await task.pass(async (tile, elements) => {
    fill(tile, elements);
    const blocks = blockCount(elements);
    for (const [t, { buffer, offset, search }] of tied.entries()) {
      work.engine.run(countEqual, {
        params: { elements, slot: offset, key: search.prefix, out: t * blocks },
        buffers: { values: buffer, counts: work.sums },
        groups: blocks,
        elements,
      });
    }
    const [bytes] = await work.engine.read([{ buffer: work.sums, byteLength: tied.length * blocks * 4 }]);
    const counts = new Uint32Array(bytes!.buffer);
    const firstBlock = blockCount(tile.begin);
    for (const [t, all] of equal.entries())
      all.set(counts.subarray(t * blocks, (t + 1) * blocks), firstBlock);
  });
  return equal;
}
