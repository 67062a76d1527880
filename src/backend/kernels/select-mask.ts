import selectMaskWgsl from '../../../shaders/select-mask.wgsl?raw';
import { BLOCK, defineKernel } from '../kernel';

/** Trim in place by a mask of one bit per element. See shaders/select-mask.wgsl. */
export const selectMask = defineKernel({
  id: 'select-mask',
  wgsl: selectMaskWgsl,
  params: { elements: 'u32', slot: 'u32', first: 'u32' },
  buffers: { mask: 'read', values: 'read_write' },
  unit: () => BLOCK,
  wasm(k, { params: { slot, first }, at, begin, n }) {
    k.selectMask(at('values') + (slot + begin) * 4, n, at('mask') + (first + begin / 32) * 4);
  },
});
