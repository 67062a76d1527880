import packKeptWgsl from '../../../shaders/pack-kept.wgsl?raw';
import { BLOCK, defineKernel } from '../kernel';

/** One bit per element: whether it is not 0. See shaders/pack-kept.wgsl. */
export const packKept = defineKernel({
  id: 'pack-kept',
  wgsl: packKeptWgsl,
  params: { elements: 'u32', slot: 'u32', first: 'u32' },
  buffers: { values: 'read', mask: 'read_write' },
  unit: () => BLOCK,
  wasm(k, { params: { slot, first }, at, begin, n }) {
    k.packKept(at('values') + (slot + begin) * 4, n, at('mask') + (first + begin / 32) * 4);
  },
});
