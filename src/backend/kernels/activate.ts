import activateWgsl from '../../../shaders/activate.wgsl?raw';
import { defineKernel } from '../kernel';

/** Codes of shaders/activate.wgsl; in f32 BLOOM's GELU is the tanh GELU. */
export const ACTIVATION_CODE = { silu: 0, gelu_erf: 1, gelu_tanh: 2, gelu_bloom: 2, relu: 3 } as const;

/** Activation and gating of an MLP's hidden rows. See shaders/activate.wgsl. */
export const activate = defineKernel({
  id: 'activate',
  wgsl: activateWgsl,
  libraries: ['special'],
  params: { rows: 'u32', inner: 'u32', x_stride: 'u32', y_stride: 'u32', gated: 'u32', kind: 'u32' },
  buffers: { x: 'read', y: 'read_write' },
  wasm(k, { params, at }) {
    const { rows, inner, x_stride, y_stride, gated, kind } = params;
    for (let r = 0; r < rows; r++) {
      k.activateRow(at('x') + r * x_stride * 4, at('y') + r * y_stride * 4, inner, gated, kind);
    }
  },
});
