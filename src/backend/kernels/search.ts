import countEqualWgsl from '../../../shaders/search/count-equal.wgsl?raw';
import countWindowWgsl from '../../../shaders/search/count-window.wgsl?raw';
import histogramWgsl from '../../../shaders/search/histogram.wgsl?raw';
import pickValuesWgsl from '../../../shaders/search/pick-values.wgsl?raw';
import rankDigitWgsl from '../../../shaders/search/rank-digit.wgsl?raw';
import sampleKeysWgsl from '../../../shaders/search/sample-keys.wgsl?raw';
import { BLOCK, blockOf, defineKernel, SCRATCH } from '../kernel';
import { listSources } from './encoding';

/** Elements one workgroup counts, the most bins, and the copies that share the traffic; as in shaders/search/histogram.wgsl. */
export const HISTOGRAM_ELEMENTS = 32768;
export const HISTOGRAM_BINS = 2048;
const HISTOGRAM_COPIES = 8;
/** Words a histogram takes in the buffer. */
export const HISTOGRAM_WORDS = HISTOGRAM_BINS * HISTOGRAM_COPIES;

/** The histogram of {@link HISTOGRAM_WORDS} words: its copies added up. */
export function sumCopies(words: Uint32Array): Uint32Array {
  const bins = words.slice(0, HISTOGRAM_BINS);
  for (let w = HISTOGRAM_BINS; w < HISTOGRAM_WORDS; w++) bins[w % HISTOGRAM_BINS]! += words[w]!;
  return bins;
}

/** One digit of the radix select over bits(|τ|). See shaders/search/histogram.wgsl. */
export const histogram = defineKernel({
  id: 'histogram',
  wgsl: histogramWgsl,
  params: {
    elements: 'u32',
    slot: 'u32',
    shift: 'u32',
    bins: 'u32',
    prefix_shift: 'u32',
    prefix: 'u32',
    out: 'u32',
  },
  buffers: { values: 'u32', bins: 'rw atomic<u32>' },
  unit: () => HISTOGRAM_ELEMENTS,
  wasm(k, { params, at, begin, n }) {
    const { slot, shift, bins, prefix_shift, prefix, out } = params;
    const copy = out + ((begin / HISTOGRAM_ELEMENTS) % HISTOGRAM_COPIES) * HISTOGRAM_BINS;
    const values = at('values') + (slot + begin) * 4;
    k.histogram(values, n, shift, bins - 1, prefix_shift, prefix, at('bins') + copy * 4);
  },
});

/** Per block, the number of elements with bits(|τ|) = key. See shaders/search/count-equal.wgsl. */
export const countEqual = defineKernel({
  id: 'count-equal',
  wgsl: countEqualWgsl,
  params: { elements: 'u32', slot: 'u32', key: 'u32', out: 'u32' },
  buffers: { values: 'u32', counts: 'rw u32' },
  unit: () => BLOCK,
  wasm(k, s) {
    const { slot, key, out } = s.params;
    k.countEqual(s.at('values') + (slot + s.begin) * 4, s.n, key, s.at('counts') + (out + blockOf(s)) * 4);
  },
});

/** Words of a block: keys above the window, equal to its highest, to its lowest, place in the list, keys between. */
export const WINDOW_COUNTS = 5;

/** Counts the keys above a window, counts those at its ends and collects those between. See shaders/search/count-window.wgsl. */
export const countWindow = defineKernel({
  id: 'count-window',
  wgsl: countWindowWgsl,
  params: { elements: 'u32', slot: 'u32', lo: 'u32', hi: 'u32', out: 'u32', base: 'u32', room: 'u32' },
  buffers: { values: 'u32', counts: 'rw u32', list: 'rw atomic<u32>' },
  unit: () => BLOCK,
  wasm(k, s) {
    const { slot, lo, hi, out, base, room } = s.params;
    const counts = s.at('counts') + (out + WINDOW_COUNTS * blockOf(s)) * 4;
    const values = s.at('values') + (slot + s.begin) * 4;
    k.countWindow(values, s.n, lo, hi, counts, s.at('list') + base * 4, room);
  },
});

/** Every `step`-th magnitude of a tensor, as a key. See shaders/search/sample-keys.wgsl. */
export const sampleKeys = defineKernel({
  id: 'sample-keys',
  wgsl: sampleKeysWgsl,
  params: { elements: 'u32', slot: 'u32', first: 'u32', step: 'u32', out: 'u32' },
  buffers: { values: 'u32', keys: 'rw u32' },
  unit: () => BLOCK,
  wasm(k, { params, at, begin, n }) {
    const { slot, first, step, out } = params;
    k.sampleKeys(at('values') + (slot + begin) * 4, n, first + begin, step, at('keys') + out * 4);
  },
});

/** The same of the task vector in slot `slot` as it is stored, on the processor alone. */
export const sampleChanges = defineKernel({
  id: 'sample-changes',
  wgsl: '',
  params: { elements: 'u32', stride: 'u32', slot: 'u32', first: 'u32', step: 'u32', out: 'u32' },
  buffers: { raw: 'u32', inputs: 'u32', values: 'u32', keys: 'rw u32' },
  unit: () => BLOCK,
  wasm(k, s) {
    const { stride, slot, first, step, out } = s.params;
    const sources = listSources(s, slot + 1, { values: s.at('values'), stride });
    k.sampleChanges(sources, slot, s.n, first + s.begin, step, s.at('keys') + out * 4, SCRATCH);
  },
});

/** Shifts of the digits, lowest first: 8 × 4 bits cover the 31 bits of |τ|. */
export const RANK_SHIFTS = [0, 4, 8, 12, 16, 20, 24, 28] as const;

/**
 * One digit of the ranks of |τ| inside rows. See shaders/search/rank-digit.wgsl. The processor's form finds whole ranks at the last
 * digit, with `order_in` as its scratch, and does nothing before, nor where it need not order them (`ranked` 0): then
 * `selectRank` finds out what it needs.
 */
export const rankDigit = defineKernel({
  id: 'rank-digit',
  wgsl: rankDigitWgsl,
  params: {
    elements: 'u32',
    slot: 'u32',
    cols: 'u32',
    shift: 'u32',
    first: 'u32',
    last: 'u32',
    ranked: 'u32',
  },
  buffers: { values: 'u32', order_in: 'u32', order_out: 'rw u32' },
  unit: ({ cols }) => cols,
  wasm(k, { params: { slot, cols, last, ranked }, at, begin, n }) {
    if (!last || !ranked) return;
    const [spare, ranks] = [at('order_in') + begin * 4, at('order_out') + begin * 4];
    k.rankRows(at('values') + (slot + begin) * 4, n, cols, spare, ranks, SCRATCH);
  },
});

/** Chosen elements of a tensor, as far as they lie in the tile. See shaders/search/pick-values.wgsl. */
export const pickValues = defineKernel({
  id: 'pick-values',
  wgsl: pickValuesWgsl,
  params: { count: 'u32', first: 'u32', elements: 'u32', slot: 'u32', out: 'u32' },
  buffers: { values: 'u32', picks: 'u32', picked: 'rw u32' },
  work: ({ count }) => count,
  span: () => 64,
  cpu({ params, u32 }) {
    const { count, first, elements, slot, out } = params;
    const values = u32('values');
    const picks = u32('picks');
    const picked = u32('picked');
    for (let i = 0; i < count; i++) {
      const at = picks[i]! - first;
      if (at >= 0 && at < elements) picked[out + i] = values[slot + at]!;
    }
  },
});

/** The same of base and task vectors as they are stored, `count` places of each, on the processor alone. */
export const pickChanges = defineKernel({
  id: 'pick-changes',
  wgsl: '',
  params: { count: 'u32', first: 'u32', elements: 'u32', stride: 'u32', models: 'u32' },
  buffers: { raw: 'u32', inputs: 'u32', values: 'u32', picks: 'u32', picked: 'rw u32' },
  wasm(k, s) {
    const { count, first, stride, models } = s.params;
    const sources = listSources(s, models + 1, { values: s.at('values'), stride });
    k.pickChanges(sources, models, s.n, first, s.at('picks'), count, s.at('picked'), SCRATCH);
  },
});
