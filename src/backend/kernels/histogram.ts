import histogramWgsl from '../../../shaders/histogram.wgsl?raw';
import { defineKernel } from '../kernel';

/** Elements one workgroup counts, the most bins, and the copies that share the traffic; as in shaders/histogram.wgsl. */
export const HISTOGRAM_ELEMENTS = 32768;
export const HISTOGRAM_BINS = 2048;
export const HISTOGRAM_COPIES = 8;
/** Words a histogram takes in the buffer. */
export const HISTOGRAM_WORDS = HISTOGRAM_BINS * HISTOGRAM_COPIES;

/** The histogram of {@link HISTOGRAM_WORDS} words: its copies added up. */
export function sumCopies(words: Uint32Array): Uint32Array {
  const bins = words.slice(0, HISTOGRAM_BINS);
  for (let w = HISTOGRAM_BINS; w < HISTOGRAM_WORDS; w++) bins[w % HISTOGRAM_BINS]! += words[w]!;
  return bins;
}

/** One digit of the radix select over bits(|τ|). See shaders/histogram.wgsl. */
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
  buffers: { values: 'read', bins: 'read_write' },
  unit: () => HISTOGRAM_ELEMENTS,
  wasm(k, { params, at, begin, n }) {
    const { slot, shift, bins, prefix_shift, prefix, out } = params;
    const copy = out + ((begin / HISTOGRAM_ELEMENTS) % HISTOGRAM_COPIES) * HISTOGRAM_BINS;
    const values = at('values') + (slot + begin) * 4;
    k.histogram(values, n, shift, bins - 1, prefix_shift, prefix, at('bins') + copy * 4);
  },
});
