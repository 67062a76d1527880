import countWindowWgsl from '../../../shaders/count-window.wgsl?raw';
import { BLOCK, blockOf, defineKernel } from '../kernel';

/** Words of a block: keys above the window, equal to its highest, to its lowest, place in the list, keys between. */
export const WINDOW_COUNTS = 5;

/** Counts the keys above a window, counts those at its ends and collects those between. See shaders/count-window.wgsl. */
export const countWindow = defineKernel({
  id: 'count-window',
  wgsl: countWindowWgsl,
  params: { elements: 'u32', slot: 'u32', lo: 'u32', hi: 'u32', out: 'u32', base: 'u32', room: 'u32' },
  buffers: { values: 'read', counts: 'read_write', list: 'read_write' },
  unit: () => BLOCK,
  wasm(k, s) {
    const { slot, lo, hi, out, base, room } = s.params;
    const counts = s.at('counts') + (out + WINDOW_COUNTS * blockOf(s)) * 4;
    const values = s.at('values') + (slot + s.begin) * 4;
    k.countWindow(values, s.n, lo, hi, counts, s.at('list') + base * 4, room);
  },
});
