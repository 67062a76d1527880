import addDampedWgsl from '../../../shaders/add-damped.wgsl?raw';
import { defineKernel } from '../kernel';

/**
 * A scaled matrix S with something added to its diagonal: `shift` to all of it, and 1 more where S has 0 (an input that is never
 * active) and `fill_dead` is set. `reversed`: rows and columns of S from the last to the first. See shaders/add-damped.wgsl.
 */
export const addDamped = defineKernel({
  id: 'add-damped',
  wgsl: addDampedWgsl,
  params: { width: 'u32', reversed: 'u32', add: 'u32', fill_dead: 'u32', scale: 'f32', shift: 'f32' },
  buffers: { s: 'read', y: 'read_write' },
  cpu({ params, f32 }) {
    const { width, reversed, add, fill_dead, scale, shift } = params;
    const s = f32('s');
    const y = f32('y');
    const n = width * width;
    for (let e = 0; e < n; e++) {
      const v = s[reversed === 1 ? n - 1 - e : e]!;
      let sum = v * scale;
      if (e % (width + 1) === 0) sum += shift + (fill_dead === 1 && v === 0 ? 1 : 0);
      y[e] = (add === 1 ? y[e]! : 0) + sum;
    }
  },
});
