import columnScoreWgsl from '../../../shaders/select/column-score.wgsl?raw';
import maskByScoreWgsl from '../../../shaders/select/mask-by-score.wgsl?raw';
import packMaskWgsl from '../../../shaders/select/pack-mask.wgsl?raw';
import rowScoreWgsl from '../../../shaders/select/row-score.wgsl?raw';
import selectMaskWgsl from '../../../shaders/select/select-mask.wgsl?raw';
import selectRandomWgsl from '../../../shaders/select/select-random.wgsl?raw';
import selectRankWgsl from '../../../shaders/select/select-rank.wgsl?raw';
import selectThresholdWgsl from '../../../shaders/select/select-threshold.wgsl?raw';
import trimRowsWgsl from '../../../shaders/select/trim-rows.wgsl?raw';
import { exact } from '../exact';
import { addTo, BLOCK, blockOf, defineKernel, SCRATCH } from '../kernel';
import { listSources } from './encoding';
import { ROW_LIBRARY, type RowForm, rowWork } from './rows';

/** Trim in place by a mask of one bit per element. See shaders/select/select-mask.wgsl. */
export const selectMask = defineKernel({
  id: 'select-mask',
  wgsl: selectMaskWgsl,
  params: { elements: 'u32', slot: 'u32', first: 'u32' },
  buffers: { mask: 'u32', values: 'rw u32' },
  unit: () => BLOCK,
  wasm(k, { params: { slot, first }, at, begin, n }) {
    k.selectMask(at('values') + (slot + begin) * 4, n, at('mask') + (first + begin / 32) * 4);
  },
});

/** DARE dropout in place from a counter-based generator. See shaders/select/select-random.wgsl. */
export const selectRandom = defineKernel({
  id: 'select-random',
  wgsl: selectRandomWgsl,
  libraries: ['philox'],
  params: { elements: 'u32', slot: 'u32', first: 'u32', below: 'u32', key0: 'u32', key1: 'u32', out: 'u32' },
  buffers: { values: 'rw u32', kept: 'rw atomic<u32>' },
  unit: () => BLOCK,
  wasm(k, s) {
    const { slot, first, below, key0, key1, out } = s.params;
    const values = s.at('values') + (slot + s.begin) * 4;
    addTo(s, 'kept', out, k.selectRandom(values, s.n, (first + s.begin) / 4, below, key0, key1, SCRATCH));
  },
});

/**
 * The same draws as a mask, one bit per element from word `mask` on, on the processor alone; their number is added to
 * kept[out]. With `all` 1 every bit is set.
 */
export const drawMask = defineKernel({
  id: 'draw-mask',
  wgsl: '',
  params: {
    elements: 'u32',
    first: 'u32',
    below: 'u32',
    key0: 'u32',
    key1: 'u32',
    mask: 'u32',
    all: 'u32',
    out: 'u32',
  },
  buffers: { masks: 'rw u32', kept: 'rw u32' },
  unit: () => BLOCK,
  wasm(k, s) {
    const { first, below, key0, key1, mask, all, out } = s.params;
    const at = s.at('masks') + (mask + s.begin / 32) * 4;
    if (all) s.words.fill(0xffffffff, at / 4, at / 4 + Math.ceil(s.n / 32));
    const kept = all ? s.n : k.drawMask(s.n, (first + s.begin) / 4, below, key0, key1, at, SCRATCH);
    addTo(s, 'kept', out, kept);
  },
});

/** Most columns for which a selection can do without ranks (`ranked` 0). */
export const MOST_UNRANKED = 65_535;

/**
 * Dropout in place with a probability set by the rank in the row. See shaders/select/select-rank.wgsl. With `ranked` 0 the
 * processor's form takes no ranks, and their buffer as scratch; then all scales are 1 and the probabilities grow with the rank.
 */
export const selectRank = defineKernel({
  id: 'select-rank',
  wgsl: selectRankWgsl,
  libraries: ['philox'],
  params: {
    elements: 'u32',
    slot: 'u32',
    first: 'u32',
    cols: 'u32',
    key0: 'u32',
    key1: 'u32',
    out: 'u32',
    ranked: 'u32',
  },
  buffers: { values: 'rw f32', ranks: 'u32', table: 'u32', kept: 'rw atomic<u32>' },
  span: () => BLOCK,
  unit: ({ cols, ranked }) => (ranked ? BLOCK : cols),
  wasm(k, s) {
    const { slot, first, cols, key0, key1, out, ranked } = s.params;
    const values = s.at('values') + (slot + s.begin) * 4;
    const ranks = s.at('ranks') + s.begin * 4;
    const table = s.at('table');
    const begin = first + s.begin;
    const kept = ranked
      ? k.selectRank(values, s.n, begin / 4, ranks, table, cols, key0, key1, SCRATCH)
      : k.selectRows(values, s.n, begin, cols, ranks, table, key0, key1, SCRATCH);
    addTo(s, 'kept', out, kept);
  },
});

/**
 * The same choice without ranks of the task vector in slot `slot` as it is stored, as a mask like those of {@link drawMask}, on the
 * processor alone. `row` has two words for each element of a row.
 */
export const drawRanks = defineKernel({
  id: 'draw-ranks',
  wgsl: '',
  params: {
    elements: 'u32',
    stride: 'u32',
    slot: 'u32',
    first: 'u32',
    cols: 'u32',
    key0: 'u32',
    key1: 'u32',
    mask: 'u32',
    out: 'u32',
  },
  buffers: {
    raw: 'u32',
    inputs: 'u32',
    values: 'u32',
    table: 'u32',
    row: 'rw f32',
    masks: 'rw u32',
    kept: 'rw u32',
  },
  unit: ({ cols }) => cols,
  wasm(k, s) {
    const { stride, slot, first, cols, key0, key1, mask, out } = s.params;
    const sources = listSources(s, slot + 1, { values: s.at('values'), stride });
    const [row, table] = [s.at('row'), s.at('table')];
    const masks = s.at('masks') + mask * 4;
    const begin = first + s.begin;
    const kept = k.drawRanks(
      ...([sources, slot, s.n, begin, cols, row, table, key0, key1, masks, s.begin, SCRATCH] as const),
    );
    addTo(s, 'kept', out, kept);
  },
});

/** Trim in place between exact thresholds, ties by lowest flat index. See shaders/select/select-threshold.wgsl. */
export const selectThreshold = defineKernel({
  id: 'select-threshold',
  wgsl: selectThresholdWgsl,
  params: {
    elements: 'u32',
    slot: 'u32',
    first_block: 'u32',
    key: 'u32',
    cut_block: 'u32',
    cut_quota: 'u32',
    inner_key: 'u32',
    inner_cut_block: 'u32',
    inner_cut_quota: 'u32',
    out: 'u32',
  },
  buffers: { values: 'rw u32', kept: 'rw atomic<u32>' },
  unit: () => BLOCK,
  wasm(k, s) {
    const p = s.params;
    const kept = k.selectThreshold(
      s.at('values') + (p.slot + s.begin) * 4,
      s.n,
      p.first_block + blockOf(s),
      p.key,
      p.cut_block,
      p.cut_quota,
      p.inner_key,
      p.inner_cut_block,
      p.inner_cut_quota,
    );
    addTo(s, 'kept', p.out, kept);
  },
});

const define = (form: RowForm) =>
  defineKernel({
    id: `trim-rows-${form}`,
    wgsl: trimRowsWgsl,
    libraries: [ROW_LIBRARY[form]],
    params: { rows: 'u32', cols: 'u32', keep: 'u32' },
    buffers: { keys: 'rw u32' },
    ...rowWork(form),
    cpu({ params, u32 }) {
      const { rows, cols, keep } = params;
      const keys = u32('keys');
      const bins = new Uint32Array(256);
      for (let begin = 0; begin < rows * cols; begin += cols) {
        const row = keys.subarray(begin, begin + cols);
        let { threshold, equal } = keepLargest(row, keep, bins);
        for (let c = 0; c < cols; c++) {
          if (row[c]! < threshold || (row[c] === threshold && equal-- <= 0)) row[c] = 0;
        }
      }
    },
  });

/**
 * The smallest of the `keep` largest keys, and how many keys equal to it are among them: byte by byte from the top, four
 * readings of the row and no sorting.
 */
function keepLargest(
  row: Uint32Array,
  keep: number,
  bins: Uint32Array,
): { threshold: number; equal: number } {
  let [threshold, equal] = [0, keep];
  for (let shift = 24; shift >= 0; shift -= 8) {
    bins.fill(0);
    for (const key of row) if ((key >>> shift) >>> 8 === threshold) bins[(key >>> shift) & 255]!++;
    let byte = 255;
    while (bins[byte]! < equal) equal -= bins[byte--]!;
    threshold = (threshold << 8) | byte;
  }
  return { threshold, equal };
}

/** The largest keys of every row. See shaders/select/trim-rows.wgsl. */
export const trimRows = { group: define('group'), line: define('line') };

const float = new Float32Array(1);
const bits = new Uint32Array(float.buffer);

/** Keys of |τ| times a factor per column, block of columns by block. See shaders/select/column-score.wgsl. */
export const columnScore = defineKernel({
  id: 'column-score',
  wgsl: columnScoreWgsl,
  params: { rows: 'u32', cols: 'u32', block: 'u32' },
  buffers: { values: 'f32', scale: 'f32', keys: 'rw u32' },
  work: ({ rows, cols }) => rows * cols,
  span: () => 1024,
  cpu({ params, f32, u32 }) {
    const { rows, cols, block } = params;
    const values = f32('values');
    const scale = f32('scale');
    const keys = u32('keys');
    let at = 0;
    for (let first = 0; first < cols; first += block) {
      const end = Math.min(first + block, cols);
      for (let r = 0; r < rows; r++) {
        for (let c = first; c < end; c++) {
          float[0] = exact(Math.abs(values[r * cols + c]!) * scale[c]!);
          keys[at++] = bits[0]! + 1;
        }
      }
    }
  },
});

/** |v| times a factor per row. See shaders/select/row-score.wgsl. */
export const rowScore = defineKernel({
  id: 'row-score',
  wgsl: rowScoreWgsl,
  params: { elements: 'u32', slot: 'u32', cols: 'u32' },
  buffers: { values: 'f32', factor: 'f32', score: 'rw f32' },
  cpu({ params, f32 }) {
    const { elements, slot, cols } = params;
    const values = f32('values');
    const factor = f32('factor');
    const score = f32('score');
    for (let row = 0, e = 0; e < elements; row++) {
      const f = factor[row]!;
      for (const end = Math.min(e + cols, elements); e < end; e++) {
        score[e] = exact(Math.abs(values[slot + e]!) * f);
      }
    }
  },
});

/** Zeros every task vector where the trimmed score is 0. See shaders/select/mask-by-score.wgsl. */
export const maskByScore = defineKernel({
  id: 'mask-by-score',
  wgsl: maskByScoreWgsl,
  params: { elements: 'u32', stride: 'u32', models: 'u32' },
  buffers: { score: 'u32', values: 'rw u32' },
  cpu({ params, u32 }) {
    const { elements, stride, models } = params;
    const score = u32('score');
    const values = u32('values');
    for (let i = 1; i <= models; i++) {
      const at = i * stride;
      for (let e = 0; e < elements; e++) if (score[e] === 0) values[at + e] = 0;
    }
  },
});

/** Words of one row of a packed mask: bit c mod 32 of word ⌊c/32⌋ is column c. */
export function maskRowWords(cols: number): number {
  return Math.ceil(cols / 32);
}

/** One bit per entry: whether its key is left. See shaders/select/pack-mask.wgsl. */
export const packMask = defineKernel({
  id: 'pack-mask',
  wgsl: packMaskWgsl,
  params: { rows: 'u32', cols: 'u32', block: 'u32' },
  buffers: { keys: 'u32', mask: 'rw u32' },
  work: ({ rows, cols }) => rows * maskRowWords(cols),
  span: () => 64,
  cpu({ params, u32 }) {
    const { rows, cols, block } = params;
    const keys = u32('keys');
    const mask = u32('mask');
    const rowWords = maskRowWords(cols);
    mask.fill(0, 0, rows * rowWords);
    let at = 0;
    for (let first = 0; first < cols; first += block) {
      const end = Math.min(first + block, cols);
      for (let r = 0; r < rows; r++) {
        for (let c = first; c < end; c++) {
          if (keys[at++]! !== 0) mask[r * rowWords + (c >>> 5)]! |= 1 << (c & 31);
        }
      }
    }
  },
});
