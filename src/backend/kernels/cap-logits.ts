import capLogitsWgsl from '../../../shaders/cap-logits.wgsl?raw';
import { defineKernel } from '../kernel';

/** Scales and soft-caps in place. See shaders/cap-logits.wgsl. */
export const capLogits = defineKernel({
  id: 'cap-logits',
  wgsl: capLogitsWgsl,
  libraries: ['special'],
  params: { elements: 'u32', factor: 'f32', cap: 'f32' },
  buffers: { x: 'read_write' },
  wasm(k, { params, at }) {
    k.capLogits(at('x'), params.elements, params.factor, params.cap);
  },
});
