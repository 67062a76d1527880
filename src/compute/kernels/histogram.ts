import histogramWgsl from '../../../shaders/histogram.wgsl?raw';
import { defineKernel } from '../kernel';
import { composeWgsl } from '../wgsl';

/** Blocks one workgroup counts, and the most bins it has room for; as in shaders/histogram.wgsl. */
export const HISTOGRAM_ELEMENTS = 32768;
export const HISTOGRAM_BINS = 2048;

/** One digit of the radix select over bits(|τ|). See shaders/histogram.wgsl. */
export const histogram = defineKernel({
  id: 'histogram',
  wgsl: composeWgsl(histogramWgsl),
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
  cpu({ params, u32 }) {
    const { elements, slot, shift, prefix_shift, prefix, out } = params;
    const mask = params.bins - 1;
    const values = u32('values');
    const bins = u32('bins');
    for (let e = slot; e < slot + elements; e++) {
      const key = values[e]! & 0x7fffffff;
      if (key >>> prefix_shift === prefix) bins[out + ((key >>> shift) & mask)]!++;
    }
  },
});
