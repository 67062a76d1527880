/** The radix select on the device: histograms of keys tile after tile, narrowed on the host, digit by digit. */
import type { EngineBuffer } from '../../compute/engine';
import { blockCount } from '../../compute/kernel';
import { countEqual } from '../../compute/kernels/count-equal';
import { HISTOGRAM_ELEMENTS, HISTOGRAM_WORDS, histogram, sumCopies } from '../../compute/kernels/histogram';
import { DIGITS, findCut, NO_CUT, narrow, type Search, type Threshold } from './radix-select';
import type { TensorTask } from './tensor-task';
import type { Tile } from './tiles';
import type { Workspace } from './workspace';

/** One search over the magnitudes that a tile has at word `offset` of `buffer`. */
export interface KeySearch {
  buffer: EngineBuffer;
  offset: number;
  search: Search;
  threshold?: Threshold;
}

/** Puts the keys of a tile where the searches look for them. */
export type FillKeys = (tile: Tile, elements: number) => void;

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

/** Narrows every search by the histograms of a digit. */
export async function takeDigit(
  work: Workspace,
  searches: readonly KeySearch[],
  digit: number,
): Promise<void> {
  if (searches.length === 0) return;
  const counts = await readDigit(work, searches.length);
  for (const [i, s] of searches.entries()) s.search = narrow(s.search, digit, counts[i]!);
}

/** Digits two and three, then the cut among equals: afterwards every search has its threshold. */
export async function finishSearches(
  task: TensorTask,
  searches: readonly KeySearch[],
  fill: FillKeys,
): Promise<void> {
  if (searches.length === 0) return;
  const { work } = task;
  for (const digit of [1, 2]) {
    work.engine.clear(work.bins);
    await task.sweep(async (tile, elements) => {
      fill(tile, elements);
      countDigit(work, searches, digit, elements);
    }, false);
    await takeDigit(work, searches, digit);
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
  await task.sweep(async (tile, elements) => {
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
