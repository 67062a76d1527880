import addDampedWgsl from '../../../shaders/add-damped.wgsl?raw';
import { defineKernel } from '../kernel';

/** A scaled matrix with something added to its diagonal. See shaders/add-damped.wgsl. */
export const addDamped = defineKernel({
  id: 'add-damped',
  wgsl: addDampedWgsl,
  params: { width: 'u32', reversed: 'u32', add: 'u32', dead: 'u32', scale: 'f32', shift: 'f32' },
  buffers: { s: 'read', y: 'read_write' },
  cpu({ params, f32 }) {
    const { width, reversed, add, dead, scale, shift } = params;
    const s = f32('s');
    const y = f32('y');
    const n = width * width;
    for (let e = 0; e < n; e++) {
      const v = s[reversed === 1 ? n - 1 - e : e]!;
      let sum = v * scale;
      if (e % (width + 1) === 0) sum += shift + (dead === 1 && v === 0 ? 1 : 0);
      y[e] = (add === 1 ? y[e]! : 0) + sum;
    }
  },
});
