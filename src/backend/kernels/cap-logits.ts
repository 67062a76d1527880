import capLogitsWgsl from '../../../shaders/cap-logits.wgsl?raw';
import { defineKernel } from '../kernel';
import { softCap } from '../special';
import { composeWgsl } from '../wgsl';

/** Scales and soft-caps in place. See shaders/cap-logits.wgsl. */
export const capLogits = defineKernel({
  id: 'cap-logits',
  wgsl: composeWgsl(capLogitsWgsl, 'special'),
  params: { elements: 'u32', factor: 'f32', cap: 'f32' },
  buffers: { x: 'read_write' },
  wasm(k, { params, at }) {
    k.capLogits(at('x'), params.elements, params.factor, params.cap);
  },
  cpu({ params, f32 }) {
    const x = f32('x');
    for (let e = 0; e < params.elements; e++) x[e] = softCap(x[e]! * params.factor, params.cap);
  },
});
