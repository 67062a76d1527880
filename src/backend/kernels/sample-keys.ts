import sampleKeysWgsl from '../../../shaders/sample-keys.wgsl?raw';
import { BLOCK, defineKernel } from '../kernel';

/** Every `step`-th magnitude of a tensor, as a key. See shaders/sample-keys.wgsl. */
export const sampleKeys = defineKernel({
  id: 'sample-keys',
  wgsl: sampleKeysWgsl,
  params: { elements: 'u32', slot: 'u32', first: 'u32', step: 'u32', out: 'u32' },
  buffers: { values: 'read', keys: 'read_write' },
  unit: () => BLOCK,
  wasm(k, { params, at, begin, n }) {
    const { slot, first, step, out } = params;
    k.sampleKeys(at('values') + (slot + begin) * 4, n, first + begin, step, at('keys') + out * 4);
  },
});
