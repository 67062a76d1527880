/** Keep-masks: which entries of a task vector matter most, one bit each. */
import type { Backend, BackendBuffer } from '../backend/backend';
import { blockCount } from '../backend/kernel';
import { columnScore } from '../backend/kernels/column-score';
import { countEqual } from '../backend/kernels/count-equal';
import { HISTOGRAM_ELEMENTS, HISTOGRAM_WORDS, histogram, sumCopies } from '../backend/kernels/histogram';
import { maskRowWords, packMask } from '../backend/kernels/pack-mask';
import { rowForm } from '../backend/kernels/row-form';
import { selectThreshold } from '../backend/kernels/select-threshold';
import { trimRows } from '../backend/kernels/trim-rows';
import {
  beginSearch,
  DIGITS,
  findCut,
  KEEP_NONE,
  keptCount,
  NO_CUT,
  narrow,
  type Search,
  type Threshold,
} from '../merge/tensor/radix-select';

/** Entries that compete for a share ρ: the whole tensor, each row, or each block of 128 columns (all rows). */
export type ScoreScope = 'tensor' | 'row' | 'block';

/** Columns of a block (Frantar and Alistarh 2023). */
const BLOCK_COLUMNS = 128;

/**
 * The mask of the k = clamp(⌊ρn⌋, 1, n) largest |τ| · √c_j of every scope (none for ρ = 0), ties by lowest flat index.
 *
 * @param tau f32 [rows, cols]; unchanged
 * @param scale √c_j, f32 [cols], from `columnScores`
 * @returns u32 [rows, ⌈cols/32⌉], LSB first, the rest of a row's last word zero. The caller frees it.
 * @throws what `Backend.allocate` and `read` throw
 */
export async function keepMask(
  engine: Backend,
  tau: BackendBuffer,
  rows: number,
  cols: number,
  scale: BackendBuffer,
  density: number,
  scope: ScoreScope,
): Promise<BackendBuffer> {
  const words = rows * maskRowWords(cols);
  const mask = engine.allocate(words * 4, 'keep-mask');
  if (density <= 0) return mask;
  const elements = rows * cols;
  const block = scope === 'block' ? Math.min(BLOCK_COLUMNS, cols) : cols;
  const keys = engine.allocate(elements * 4, 'score keys');
  engine.run(columnScore, {
    params: { rows, cols, block },
    buffers: { values: tau, scale, keys },
    groups: Math.ceil(elements / 1024),
    elements,
  });
  if (scope === 'row') {
    const { form, groups } = rowForm(engine, rows);
    const params = { rows, cols, keep: keptCount(density, cols) };
    engine.run(trimRows[form], { params, buffers: { keys }, groups, elements: rows });
  } else {
    await trim(engine, keys, stretches(rows, cols, block), density);
  }
  engine.run(packMask, {
    params: { rows, cols, block },
    buffers: { keys, mask },
    groups: Math.ceil(words / 64),
    elements: words,
  });
  engine.free(keys);
  return mask;
}

/** Keys that compete with each other: `count` words from `begin` on. */
interface Stretch {
  begin: number;
  count: number;
}

function stretches(rows: number, cols: number, block: number): Stretch[] {
  return Array.from({ length: Math.ceil(cols / block) }, (_, b) => ({
    begin: b * block * rows,
    count: Math.min(block, cols - b * block) * rows,
  }));
}

/** Zeros all keys but the k largest of every stretch, by the radix select that trims task vectors. */
async function trim(
  engine: Backend,
  keys: BackendBuffer,
  all: readonly Stretch[],
  density: number,
): Promise<void> {
  const searches = all.map(({ count }) => beginSearch(keptCount(density, count), count));
  await search(engine, keys, all, searches);
  const thresholds = await cutTies(engine, keys, all, searches);
  const kept = engine.allocate(4, 'kept');
  for (const [i, { begin, count }] of all.entries()) {
    const { key, cutBlock, cutQuota } = thresholds[i]!;
    engine.run(selectThreshold, {
      params: {
        elements: count,
        slot: begin,
        first_block: 0,
        key,
        cut_block: cutBlock,
        cut_quota: cutQuota,
        inner_key: KEEP_NONE.key,
        inner_cut_block: KEEP_NONE.cutBlock,
        inner_cut_quota: KEEP_NONE.cutQuota,
        out: 0,
      },
      buffers: { values: keys, kept },
      groups: blockCount(count),
      elements: count,
    });
  }
  engine.free(kept);
}

/** Three digits: afterwards every search's prefix is its threshold. */
async function search(
  engine: Backend,
  keys: BackendBuffer,
  all: readonly Stretch[],
  searches: Search[],
): Promise<void> {
  const bins = engine.allocate(all.length * HISTOGRAM_WORDS * 4, 'bins');
  for (const [digit, { shift, bins: width, prefixShift }] of DIGITS.entries()) {
    engine.clear(bins);
    for (const [i, { begin, count }] of all.entries()) {
      engine.run(histogram, {
        params: {
          elements: count,
          slot: begin,
          shift,
          bins: width,
          prefix_shift: prefixShift,
          prefix: searches[i]!.prefix,
          out: i * HISTOGRAM_WORDS,
        },
        buffers: { values: keys, bins },
        groups: Math.ceil(count / HISTOGRAM_ELEMENTS),
        elements: count,
      });
    }
    const [bytes] = await engine.read([{ buffer: bins, byteLength: all.length * HISTOGRAM_WORDS * 4 }]);
    const counts = new Uint32Array(bytes!.buffer);
    for (const [i, s] of searches.entries()) {
      searches[i] = narrow(
        s,
        digit,
        sumCopies(counts.subarray(i * HISTOGRAM_WORDS, (i + 1) * HISTOGRAM_WORDS)),
      );
    }
  }
  engine.free(bins);
}

/** The thresholds, with the block in which the quota of equal keys runs out. */
async function cutTies(
  engine: Backend,
  keys: BackendBuffer,
  all: readonly Stretch[],
  searches: readonly Search[],
): Promise<Threshold[]> {
  const tied = [...searches.keys()].filter((i) => searches[i]!.wanted < searches[i]!.available);
  const most = blockCount(Math.max(...all.map(({ count }) => count)));
  const counts = engine.allocate(Math.max(1, tied.length) * most * 4, 'equal keys');
  for (const [t, i] of tied.entries()) {
    const { begin, count } = all[i]!;
    engine.run(countEqual, {
      params: { elements: count, slot: begin, key: searches[i]!.prefix, out: t * most },
      buffers: { values: keys, counts },
      groups: blockCount(count),
      elements: count,
    });
  }
  const [bytes] = await engine.read([{ buffer: counts, byteLength: tied.length * most * 4 }]);
  engine.free(counts);
  const equal = new Uint32Array(bytes!.buffer);
  const thresholds = searches.map(
    ({ prefix }): Threshold => ({ key: prefix, cutBlock: NO_CUT, cutQuota: 0 }),
  );
  for (const [t, i] of tied.entries()) {
    const { prefix, wanted } = searches[i]!;
    thresholds[i] = findCut(prefix, wanted, equal.subarray(t * most, (t + 1) * most));
  }
  return thresholds;
}
