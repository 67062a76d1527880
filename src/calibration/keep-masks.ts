/** Masks of the most important elements of a task vector, one bit each. */
import type { Backend, BackendBuffer } from '../backend/backend';
import { blockCount } from '../backend/kernel';
import { rowForm } from '../backend/kernels/rows';
import { HISTOGRAM_WORDS } from '../backend/kernels/search';
import { columnScore, maskRowWords, packMask, selectThreshold, trimRows } from '../backend/kernels/select';
import type { KeySearch } from '../merge/tensor/key-search';
import { searchDigits } from '../merge/tensor/radix-search';
import { beginSearch, keptCount, thresholdWords } from '../merge/tensor/radix-select';

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
  engine.run(columnScore, { params: { rows, cols, block }, buffers: { values: tau, scale, keys } });
  if (scope === 'row') {
    const form = rowForm(engine);
    const params = { rows, cols, keep: keptCount(density, cols) };
    engine.run(trimRows[form], { params, buffers: { keys } });
  } else {
    await trim(engine, stretches(keys, rows, cols, block, density));
  }
  engine.run(packMask, { params: { rows, cols, block }, buffers: { keys, mask } });
  engine.free(keys);
  return mask;
}

/** The searches of keys that compete with each other: whole columns of a width, one after another. */
function stretches(
  keys: BackendBuffer,
  rows: number,
  cols: number,
  block: number,
  density: number,
): (KeySearch & { elements: number })[] {
  return Array.from({ length: Math.ceil(cols / block) }, (_, b) => {
    const elements = Math.min(block, cols - b * block) * rows;
    const search = beginSearch(keptCount(density, elements), elements);
    return { buffer: keys, offset: b * block * rows, elements, search };
  });
}

/** Zeros all keys but the k largest of every stretch. */
async function trim(engine: Backend, all: ReturnType<typeof stretches>): Promise<void> {
  const longest = Math.max(...all.map(({ elements }) => elements));
  const blocks = blockCount(longest);
  const bins = engine.allocate(all.length * HISTOGRAM_WORDS * 4, 'bins');
  const sums = engine.allocate(all.length * blocks * 4, 'equal keys');
  await searchDigits({ work: { engine, bins, sums }, blocks, pass: (visit) => visit(0, longest) }, all);
  const kept = engine.allocate(4, 'kept');
  for (const { buffer, offset, elements, threshold } of all) {
    engine.run(selectThreshold, {
      params: {
        elements,
        slot: offset,
        first_block: 0,
        ...thresholdWords(threshold!),
        out: 0,
      },
      buffers: { values: buffer, kept },
    });
  }
  for (const buffer of [bins, sums, kept]) engine.free(buffer);
}
