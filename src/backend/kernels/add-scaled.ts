import addScaledWgsl from '../../../shaders/add-scaled.wgsl?raw';
import { defineKernel } from '../kernel';

/** y += scale · x. See shaders/add-scaled.wgsl. */
export const addScaled = defineKernel({
  id: 'add-scaled',
  wgsl: addScaledWgsl,
  params: { elements: 'u32', scale: 'f32' },
  buffers: { x: 'read', y: 'read_write' },
  wasm(k, { params, at }) {
    k.addScaled(at('x'), at('y'), params.elements, params.scale);
  },
});
