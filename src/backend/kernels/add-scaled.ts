import addScaledWgsl from '../../../shaders/add-scaled.wgsl?raw';
import { defineKernel } from '../kernel';
import { composeWgsl } from '../wgsl';

/** y += scale · x. See shaders/add-scaled.wgsl. */
export const addScaled = defineKernel({
  id: 'add-scaled',
  wgsl: composeWgsl(addScaledWgsl),
  params: { elements: 'u32', scale: 'f32' },
  buffers: { x: 'read', y: 'read_write' },
  cpu({ params, f32 }) {
    const { elements, scale } = params;
    const x = f32('x');
    const y = f32('y');
    for (let e = 0; e < elements; e++) y[e] = y[e]! + scale * x[e]!;
  },
});
